"""``python -m cli``: the same as ``pagefleet``."""

from cli.main import run

run()
