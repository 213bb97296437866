"""Read pages without end in one process, and say every so often what it holds."""

import argparse
import itertools
import json
import os
import sys
import time
from pathlib import Path

from bench.process_usage import resident_bytes
from bench.programs.pagefleet import open_core
from workers.ocr.page_image import PageFailure
from workers.ocr.page_reader import PageReader

_DPI = 200


def main() -> None:
    """Read ``--pages`` pages, from the first document to the last and round again."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pages", type=int, required=True)
    parser.add_argument("--every", type=int, required=True)
    parser.add_argument("--profile", required=True)
    parser.add_argument("--device", required=True)
    parser.add_argument("--seconds", type=float, default=0.0, help="0 for no limit")
    parser.add_argument("documents", nargs="+", type=Path)
    arguments = parser.parse_args()
    engine, renderer = open_core(profile=arguments.profile, device=arguments.device)
    reader = PageReader(engine)
    started = time.monotonic()
    done = failed = 0
    with renderer:
        for document in itertools.cycle(arguments.documents):
            wanted = range(min(renderer.open(document).page_count, arguments.pages - done))
            for outcome in reader.read_pages(renderer.pages(wanted, dpi=_DPI, mode="auto")):
                done += 1
                failed += isinstance(outcome, PageFailure)
                is_late = 0 < arguments.seconds < time.monotonic() - started
                is_last = is_late or done == arguments.pages
                if is_last or done % arguments.every == 0:
                    _tell(done, failed, time.monotonic() - started, renderer.child_pid)
                if is_last:
                    return


def _tell(done: int, failed: int, seconds: float, child_pid: int | None) -> None:
    record = {
        "pages": done,
        "pages_failed": failed,
        "seconds": round(seconds, 1),
        "engine_bytes": resident_bytes(os.getpid()),
        "render_child_bytes": resident_bytes(child_pid) if child_pid else 0,
    }
    sys.stdout.write(json.dumps(record) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
