"""Holding on to a claimed row while its work lasts."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog

from db.errors import DatabaseError, StaleStateError
from workers.app import HostExhaustedError

log = structlog.get_logger(__name__)

RENEWALS_PER_LEASE = 3
# So that a cancelled document gives its slot back soon. Looking writes nothing, where a renewal
# writes to the database's log, and this thread does it while pages are read.
LOOK_EVERY_S = 2.0


class Lease:
    """A lease that a thread renews; whoever works asks ``check`` between its steps."""

    def __init__(
        self, renew: Callable[[], None], *, look: Callable[[], None], lease_s: float
    ) -> None:
        self._renew = renew
        self._look = look
        self._lease_s = lease_s
        self._renewed_at = time.monotonic()
        self._is_lost = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="lease", daemon=True)

    def start(self) -> None:
        """Begin to renew.

        Raises:
            HostExhaustedError: the machine has no thread left.
        """
        try:
            self._thread.start()
        except RuntimeError as error:
            raise HostExhaustedError("no thread can be started on this machine") from error

    def stop(self) -> None:
        """Stop renewing; the row's own move to its next state ends the lease."""
        self._stop.set()
        self._thread.join()

    def check(self) -> None:
        """Go on only while the row is ours.

        Raises:
            StaleStateError: the work was cancelled, or another attempt took the row, or renewals
                failed for so long that another one may have.
        """
        if self._is_lost or time.monotonic() - self._renewed_at > self._lease_s:
            raise StaleStateError("the lease is lost")

    def _keep(self) -> None:
        renew_every_s = self._lease_s / RENEWALS_PER_LEASE
        pause_s = min(renew_every_s, LOOK_EVERY_S)
        while not self._stop.wait(pause_s):
            asked_at = time.monotonic()
            # One pause early rather than late.
            is_due = asked_at - self._renewed_at > renew_every_s - pause_s
            try:
                (self._renew if is_due else self._look)()
            except StaleStateError:
                self._is_lost = True
                return
            except DatabaseError as error:
                # Tried again at the next tick; ``check`` notices when it has been too long.
                log.warning("lease not renewed", error=type(error).__name__)
            else:
                self._renewed_at = asked_at if is_due else self._renewed_at


@contextmanager
def kept(renew: Callable[[], None], *, look: Callable[[], None], lease_s: float) -> Iterator[Lease]:
    """Renew a lease in the background until the block ends.

    Args:
        renew: extends the lease in the database; raises ``StaleStateError`` when it is lost.
        look: asks, more often and cheaper, whether it is lost; raises the same.
        lease_s: how long the lease lasts without renewal, in seconds.
    """
    lease = Lease(renew, look=look, lease_s=lease_s)
    lease.start()
    try:
        yield lease
    finally:
        lease.stop()
