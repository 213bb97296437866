import threading

import pytest

from db.errors import DatabaseUnavailableError, StaleStateError
from workers.lease import kept


class Renewals:
    """Counts renewals and can fail them; ``wait_for`` blocks until so many were asked for."""

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error
        self.count = 0
        self._changed = threading.Condition()

    def __call__(self) -> None:
        with self._changed:
            self.count += 1
            self._changed.notify_all()
        if self._error is not None:
            raise self._error

    def wait_for(self, count: int) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self.count >= count, timeout=10)


def is_held() -> None:
    """Find nothing wrong."""


def test_work_that_is_cancelled_stops_long_before_its_lease_is_renewed() -> None:
    looks = Renewals(StaleStateError("x"))
    renewals = Renewals()

    with kept(renewals, look=looks, lease_s=3_600) as lease:
        looks.wait_for(1)
        lease._thread.join()

        with pytest.raises(StaleStateError):
            lease.check()

    assert renewals.count == 0


def test_a_lease_is_renewed_while_the_work_lasts() -> None:
    renewals = Renewals()

    with kept(renewals, look=is_held, lease_s=0.3) as lease:
        was_renewed_often = renewals.wait_for(4)
        lease.check()

    assert was_renewed_often


def test_work_stops_when_another_attempt_has_the_row() -> None:
    renewals = Renewals(StaleStateError("x"))

    with kept(renewals, look=is_held, lease_s=0.06) as lease:
        renewals.wait_for(1)
        lease._thread.join()

        with pytest.raises(StaleStateError):
            lease.check()


def test_work_stops_when_renewals_failed_for_a_whole_lease() -> None:
    renewals = Renewals(DatabaseUnavailableError("x"))

    with kept(renewals, look=is_held, lease_s=0.06) as lease:
        renewals.wait_for(5)

        with pytest.raises(StaleStateError):
            lease.check()


class OutageOfOneRenewal(Renewals):
    """Fails the first renewal and no other."""

    def __call__(self) -> None:
        super().__call__()
        if self.count == 1:
            raise DatabaseUnavailableError("x")


def test_one_renewal_that_fails_costs_no_lease() -> None:
    renewals = OutageOfOneRenewal()

    with kept(renewals, look=is_held, lease_s=0.9) as lease:
        renewals.wait_for(4)

        lease.check()
