"""``python bench/storm.py``: ``pagefleet bench storm`` from a checkout that is not installed."""

import runpy
import sys
from pathlib import Path


def main() -> None:
    """Run the command line of this checkout with the arguments of this script."""
    # In place of this script's own folder, whose modules would be found under other names.
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    sys.argv = [sys.argv[0], "bench", "storm", *sys.argv[1:]]
    runpy.run_module("cli", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
