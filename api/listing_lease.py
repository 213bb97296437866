"""Holding on to a listing for as long as somebody goes through it.

A page may take longer than a lease: a store that is silent is asked for minutes. Unlike the leases
of workers (``workers.lease``) this one is only told when it is lost: whatever a holder writes is
fenced by its claim.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog

from db.errors import DatabaseError, StaleStateError

log = structlog.get_logger(__name__)


@contextmanager
def kept(renew: Callable[[], None], *, every_s: float) -> Iterator[threading.Event]:
    """Renew a lease in the background until the block ends; the event is set when it is lost.

    Args:
        renew: extends the lease; raises ``StaleStateError`` when somebody else has it.
        every_s: between two renewals, in seconds; a third of what a lease lasts.
    """
    stop, is_lost = threading.Event(), threading.Event()

    def keep() -> None:
        while not stop.wait(every_s):
            try:
                renew()
            except StaleStateError:
                is_lost.set()
                return
            except DatabaseError as error:
                log.warning("lease of a listing not renewed", error=type(error).__name__)

    thread = threading.Thread(target=keep, name="listing-lease", daemon=True)
    thread.start()
    try:
        yield is_lost
    finally:
        stop.set()
        # Whoever gives the listing back next must not have it renewed behind that.
        thread.join()
