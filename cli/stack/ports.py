"""Free ports on the loopback address."""

import socket
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import zip_longest

LOOPBACK = "127.0.0.1"


def free_ports(count: int, *, preferred: Sequence[int] = ()) -> list[int]:
    """Choose ports that nobody listens on; another process can still be quicker to take one.

    Args:
        count: how many, all different.
        preferred: ports to use again where they are free, by position, so that addresses
            stay the same from one start to the next.
    """
    with ExitStack() as held:
        ports: list[int] = []
        for _, wish in zip_longest(range(count), preferred[:count]):
            listener = held.enter_context(_bind_one(wish))
            ports.append(listener.getsockname()[1])
        return ports


def is_free(port: int) -> bool:
    """Tell whether a server could listen on a loopback port now."""
    try:
        _bind(port).close()
    except OSError:
        return False
    return True


def _bind_one(wish: int | None) -> socket.socket:
    if wish is not None:
        try:
            return _bind(wish)
        except OSError:
            pass  # taken since; any other does
    return _bind(0)


def _bind(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        # Without it a port counts as taken for a minute after its last connection closed.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((LOOPBACK, port))
        # A bound port can be bound again with the option above until somebody listens.
        listener.listen()
    except OSError:
        listener.close()
        raise
    return listener
