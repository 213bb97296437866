"""``python -m cli``: the same as ``pagefleet``."""

import sys

_PROBE = "alive"
_INTERRUPTED = 130  # as a shell says it: 128 and the number of SIGINT


def run() -> None:
    """Run the command line; the entry point of the ``pagefleet`` script."""
    try:
        # The commands take a second to import, in which Ctrl-C may come as well. A probe, which
        # runs every few seconds, does not wait for all of them.
        if sys.argv[1:2] == [_PROBE]:
            del sys.argv[1]
            from cli.alive import run as run_command
        else:
            from cli.main import run as run_command

        run_command()
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)


if __name__ == "__main__":
    run()
