"""``python -m cli``: the same as ``pagefleet``."""

import sys

_INTERRUPTED = 130  # as a shell says it: 128 and the number of SIGINT


def run() -> None:
    """Run the command line; the entry point of the ``pagefleet`` script."""
    try:
        # The commands take a second to import, in which Ctrl-C may come as well.
        from cli.main import run as run_command

        run_command()
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)


if __name__ == "__main__":
    run()
