"""The command line in a process of its own, as a user runs it."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run_pagefleet(
    *arguments: str | Path, timeout_s: float = 120, stdin: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run ``pagefleet`` to its end; ``environment`` is added, and names no other server."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("PAGEFLEET_") or name in {"PAGEFLEET_MODELS_DIR", "PAGEFLEET_HOME"}
    }
    return subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-m", "cli", *map(str, arguments)],
        check=False,
        input=stdin,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**inherited, **environment},
        timeout=timeout_s,
    )
