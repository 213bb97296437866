"""Ends process groups when the process that started this program is gone.

Run as a program, by path and without ``site``: it imports nothing of the project, so that it
starts in milliseconds. Standard input carries lines, ``hold GROUP SIGNAL`` and
``release GROUP``; its end means that the other side is gone, however it died.
"""

import os
import signal
import sys
import time

GRACE_S = 5.0
_POLL_S = 0.05


def end_groups(held: dict[int, int], *, grace_s: float = GRACE_S) -> None:
    """Send each group its signal, wait, and kill what is left.

    Args:
        held: the signal for each process group.
        grace_s: time between the signal and SIGKILL.
    """
    for group, signal_number in held.items():
        _send(group, signal_number)
    deadline_s = time.monotonic() + grace_s
    while any(_send(group, 0) for group in held) and time.monotonic() < deadline_s:
        time.sleep(_POLL_S)  # noqa: TID251 - a program of its own, without an event loop
    for group in held:
        _send(group, signal.SIGKILL)


def _send(group: int, signal_number: int) -> bool:
    try:
        os.killpg(group, signal_number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _main() -> None:
    # Ctrl-C and `kill` are for the owner; this program ends when the owner has.
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    held: dict[int, int] = {}
    for line in sys.stdin:
        match line.split():
            case ["hold", group, signal_number]:
                held[int(group)] = int(signal_number)
            case ["release", group]:
                held.pop(int(group), None)
    end_groups(held)


if __name__ == "__main__":
    _main()
