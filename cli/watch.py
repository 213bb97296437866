"""Following documents and batches until nothing about them will change any more."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from cli.client import UNREACHABLE
from cli.errors import ApiError

T = TypeVar("T")

INTERVAL_S: Final = 1.0
# An API that is restarted comes back within it.
_PATIENCE_S: Final = 60.0
_UNAVAILABLE: Final = 503


def follow(
    fetch: Callable[[], T], *, is_final: Callable[[T], bool], interval_s: float = INTERVAL_S
) -> Iterator[T]:
    """Yield what ``fetch`` returns, again and again, the final one last.

    An API that does not answer for a while is waited for.

    Raises:
        ApiError: it refused, or has not answered for a minute.
    """
    wait = threading.Event().wait  # unlike sleep, it says what for; nobody ever sets it
    answered_at = time.monotonic()
    while True:
        try:
            current = fetch()
        except ApiError as error:
            is_passing = error.code == UNREACHABLE or error.status == _UNAVAILABLE
            if not is_passing or time.monotonic() - answered_at > _PATIENCE_S:
                raise
        else:
            answered_at = time.monotonic()
            yield current
            if is_final(current):
                return
        wait(interval_s)
