import threading

from api.listing_lease import kept
from db.errors import DatabaseUnavailableError, StaleStateError


class Renewals:
    """Counts renewals and fails them; ``wait_for`` blocks until so many were asked for."""

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error
        self._changed = threading.Condition()
        self.count = 0

    def __call__(self) -> None:
        with self._changed:
            self.count += 1
            self._changed.notify_all()
        if self._error is not None:
            raise self._error

    def wait_for(self, count: int) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self.count >= count, timeout=10)


def test_a_lease_is_renewed_while_the_block_lasts_and_no_longer() -> None:
    renewals = Renewals()

    with kept(renewals, every_s=0.01) as is_lost:
        was_renewed = renewals.wait_for(3)
    count = renewals.count

    assert was_renewed
    assert not is_lost.wait(0.1)
    assert renewals.count == count


def test_a_lease_that_somebody_else_has_is_said_to_be_lost() -> None:
    renewals = Renewals(StaleStateError("x"))

    with kept(renewals, every_s=0.01) as is_lost:
        assert is_lost.wait(10)

    assert renewals.count == 1


def test_a_renewal_that_fails_is_tried_again() -> None:
    renewals = Renewals(DatabaseUnavailableError("x"))

    with kept(renewals, every_s=0.01) as is_lost:
        assert renewals.wait_for(3)

    assert not is_lost.is_set()
