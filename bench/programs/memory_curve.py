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
            for outcome in reader.read_pages(renderer.pages(wanted, dpi=_DPI)):
                done += 1
                failed += isinstance(outcome, PageFailure)
                if done % arguments.every == 0 or done == arguments.pages:
                    child = renderer.child_pid
                    record = {
                        "pages": done,
                        "pages_failed": failed,
                        "seconds": round(time.monotonic() - started, 1),
                        "engine_bytes": resident_bytes(os.getpid()),
                        "render_child_bytes": resident_bytes(child) if child else 0,
                    }
                    sys.stdout.write(json.dumps(record) + "\n")
                    sys.stdout.flush()
            is_late = 0 < arguments.seconds < time.monotonic() - started
            if done >= arguments.pages or is_late:
                return


if __name__ == "__main__":
    main()
