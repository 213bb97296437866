"""A GPU that a process sees, of which a test says how full it is."""

import json
from dataclasses import dataclass
from pathlib import Path

GIB = 2**30
_LIBRARY = Path(__file__).parent / "fake_nvml"


@dataclass(frozen=True)
class FakeGpu:
    """One card of 80 GiB; the file says what is used of it."""

    file: Path

    @property
    def environment(self) -> dict[str, str]:
        """Return what lets a process see it, in place of what this machine has."""
        return {
            "PYTHONPATH": str(_LIBRARY),
            "FAKE_NVML_FILE": str(self.file),
            "PAGEFLEET_DEVICE": "auto",
        }

    def fill(self, used_bytes: int) -> None:
        """Let so much of it be in use, in one step for whoever reads."""
        partial = self.file.with_suffix(".partial")
        partial.write_text(json.dumps({"used": used_bytes, "total": 80 * GIB}), "utf-8")
        Path(partial).replace(self.file)
