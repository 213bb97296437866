"""``pagefleet bench memory``: does memory stay flat, and does a long document need more?"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from bench.errors import BenchError
from bench.machine import describe_machine
from bench.program_process import ROOT

_MIB: Final = 2**20
# Memory rises while the first pages of each size fill buffers; flatness is judged after them.
_SETTLED_SHARE: Final = 0.25
_SAMPLES: Final = 200


@dataclass(frozen=True, slots=True)
class Reading:
    """How a process reads.

    Attributes:
        profile: see ``workers.ocr.profiles``.
        device: ``cpu``, ``cuda`` or ``auto``.
        environment: all that it has.
        time_limit_s: after it, what was measured so far is all; 0 for no limit.
    """

    profile: str
    device: str
    environment: dict[str, str]
    time_limit_s: float = 0.0


def memory_curve(
    documents: Sequence[Path],
    page_count: int,
    reading: Reading,
    *,
    on_pages: Callable[[int], None],
) -> list[dict[str, Any]]:
    """Read documents over and over in one fresh process.

    Args:
        documents: in turn; all readable.
        page_count: in all.
        reading: how.
        on_pages: told the pages that are done.

    Returns:
        About two hundred samples: pages, seconds, resident bytes of engine and render child.

    Raises:
        BenchError: the process ended before.
    """
    samples = []
    for sample in _samples(documents, page_count, reading):
        samples.append(sample)
        on_pages(sample["pages"])
    is_short = not samples or samples[-1]["pages"] < page_count
    if is_short and not (samples and reading.time_limit_s):
        raise BenchError("the process that reads pages ended before its time")
    return samples


def curve_record(samples: Sequence[dict[str, Any]], *, title: str) -> dict[str, Any]:
    """Return a curve with its figures.

    ``growth`` is the mean of the last tenth over the mean of the tenth after a quarter of all
    pages, when every page size has been seen: 1.0 is flat.
    """
    totals = [sample["engine_bytes"] + sample["render_child_bytes"] for sample in samples]
    tenth = max(1, len(totals) // 10)
    settled = int(len(totals) * _SETTLED_SHARE)
    early, late = totals[settled : settled + tenth], totals[-tenth:]
    return {
        "title": f"{title}: {samples[-1]['pages']} pages",
        "machine": describe_machine(),
        "pages": samples[-1]["pages"],
        "pages_failed": samples[-1]["pages_failed"],
        "pages_per_s": round(samples[-1]["pages"] / max(samples[-1]["seconds"], 0.1), 3),
        "peak_mib": round(max(totals) / _MIB),
        "growth": round(fmean(late) / fmean(early), 3),
        "samples": list(samples),
    }


def length_record(
    short: Sequence[dict[str, Any]], long: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """Compare the peaks of a short and a long document of the same pages."""
    peaks = [
        max(sample["engine_bytes"] + sample["render_child_bytes"] for sample in samples)
        for samples in (short, long)
    ]
    return {
        "pages": [short[-1]["pages"], long[-1]["pages"]],
        "peak_mib": [round(peak / _MIB) for peak in peaks],
        "ratio": round(peaks[1] / peaks[0], 3),
    }


def _samples(
    documents: Sequence[Path], page_count: int, reading: Reading
) -> Iterator[dict[str, Any]]:
    command = [
        *(sys.executable, "-m", "bench.programs.memory_curve"),
        *("--pages", str(page_count), "--every", str(max(1, page_count // _SAMPLES))),
        *("--profile", reading.profile, "--device", reading.device),
        *("--seconds", str(reading.time_limit_s)),
        *(str(path.absolute()) for path in documents),
    ]
    with subprocess.Popen(  # noqa: S603 - our own program
        command, cwd=ROOT, env=reading.environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None  # noqa: S101 - stdout=PIPE, for the type checker
        try:
            for line in process.stdout:
                yield json.loads(line)
        finally:
            process.terminate()
