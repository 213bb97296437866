from collections.abc import Mapping

import pytest

from api.admission import (
    MAX_RETRY_S,
    MIN_RETRY_S,
    Admission,
    Limits,
    Load,
    seconds_to_midnight,
)
from api.errors import ApiError
from db.admission import KeyUse, OpenWork
from db.errors import DatabaseUnavailableError
from db.states import Priority
from tests.support.clock import Clock
from tests.support.rows import make_document

NO_LIMIT = 10**18


class Counted:
    """Counts what a test says is open; each count takes ``takes_s`` on the clock."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.takes_s = 0.0
        self.times = 0
        self.load = load_of()
        self.is_away = False

    def __call__(self) -> Load:
        self.times += 1
        if self.is_away:
            raise DatabaseUnavailableError("away")
        self.clock.now_s += self.takes_s
        return self.load


def load_of(
    *, interactive: int = 0, bulk: int = 0, pixels: int = 0, pages_per_s: float = 0.0
) -> Load:
    return Load(
        open={
            Priority.INTERACTIVE: OpenWork(interactive, interactive, pixels),
            Priority.BULK: OpenWork(bulk, bulk, 0),
        },
        pages_in_flight=0,
        pages_per_s=pages_per_s,
    )


@pytest.fixture
def counted() -> Counted:
    return Counted(Clock())


def admission_of(
    counted: Counted, *, interactive: int = 10, bulk: int = 1_000, pixels: int = NO_LIMIT
) -> Admission:
    limits: Mapping[Priority, Limits] = {
        Priority.INTERACTIVE: Limits(interactive, pixels),
        Priority.BULK: Limits(bulk, pixels),
    }
    return Admission(counted, limits, cache_s=2, clock=counted.clock)


def retry_after_of(refused: pytest.ExceptionInfo[ApiError]) -> int:
    return int(refused.value.headers["Retry-After"])


def test_a_priority_that_is_full_is_refused_and_the_other_is_not(counted: Counted) -> None:
    counted.load = load_of(interactive=5, bulk=1_000)
    admission = admission_of(counted)

    admission.require_room(Priority.INTERACTIVE)
    admission.require_room(None)
    with pytest.raises(ApiError, match="system_full"):
        admission.require_room(Priority.BULK)


def test_a_document_of_unknown_priority_is_refused_when_all_are_full(counted: Counted) -> None:
    counted.load = load_of(interactive=10, bulk=1_000)

    with pytest.raises(ApiError, match="system_full"):
        admission_of(counted).require_room(None)


def test_pixels_count_as_pages_do(counted: Counted) -> None:
    counted.load = load_of(interactive=1, pixels=500)

    with pytest.raises(ApiError, match="system_full"):
        admission_of(counted, pixels=500).require_room(Priority.INTERACTIVE)


def test_what_is_accepted_after_a_count_is_added_to_it(counted: Counted) -> None:
    counted.load = load_of(interactive=8)
    admission = admission_of(counted)
    admission.require_room(Priority.INTERACTIVE)

    admission.note_accepted(make_document(page_estimate=2))

    with pytest.raises(ApiError, match="system_full"):
        admission.require_room(Priority.INTERACTIVE)
    assert counted.times == 1


def test_a_new_count_has_what_was_accepted_before_it(counted: Counted) -> None:
    admission = admission_of(counted)
    admission.load()
    admission.note_accepted(make_document(page_estimate=2))
    counted.load = load_of(interactive=2)

    counted.clock.now_s += 2

    assert admission.load().open[Priority.INTERACTIVE].pages == 2


def test_a_count_that_took_long_is_used_for_long(counted: Counted) -> None:
    counted.takes_s = 1
    admission = admission_of(counted)
    admission.load()

    counted.clock.now_s += 19
    admission.load()
    assert counted.times == 1

    counted.clock.now_s += 2
    admission.load()
    assert counted.times == 2


def test_a_count_that_fails_leaves_the_one_before_in_use(counted: Counted) -> None:
    counted.load = load_of(interactive=8)
    admission = admission_of(counted)
    admission.note_accepted(make_document(page_estimate=1))
    admission.load()
    admission.note_accepted(make_document(page_estimate=2))
    counted.clock.now_s += 2
    counted.is_away = True

    assert admission.load().open[Priority.INTERACTIVE].pages == 10
    assert counted.times == 2


def test_a_first_count_that_fails_is_an_error(counted: Counted) -> None:
    counted.is_away = True

    with pytest.raises(DatabaseUnavailableError):
        admission_of(counted).load()


@pytest.mark.parametrize(
    ("over", "pages_per_s", "seconds"),
    [(0, 10, MIN_RETRY_S), (199, 10, 20), (10_000, 1, MAX_RETRY_S), (0, 0, 60)],
)
def test_a_client_is_told_to_come_back_when_there_may_be_room(
    counted: Counted, over: int, pages_per_s: float, seconds: int
) -> None:
    counted.load = load_of(bulk=1_000 + over, pages_per_s=pages_per_s)

    with pytest.raises(ApiError) as refused:
        admission_of(counted).require_room(Priority.BULK)

    assert retry_after_of(refused) == seconds


def test_a_key_over_its_pages_of_the_day_is_told_to_wait_for_the_next(counted: Counted) -> None:
    refusal = admission_of(counted).refusal_of(KeyUse(None, 100, None, 130, 4))

    assert refusal.code == "quota_exceeded"
    assert "130 pages today" in (refusal.detail or "")
    assert "pages are estimated" in (refusal.detail or "")
    assert "`pagefleet keys quota`" in (refusal.detail or "")
    assert 1 <= int(refusal.headers["Retry-After"]) <= 86_400


def test_a_key_over_its_open_pages_is_told_to_wait_for_them(counted: Counted) -> None:
    counted.load = load_of(pages_per_s=2)
    admission = admission_of(counted)
    admission.load()

    refusal = admission.refusal_of(KeyUse(100, None, 139, 139, 4))

    assert "139 pages open" in (refusal.detail or "")
    assert "`pagefleet keys quota`" in (refusal.detail or "")
    assert refusal.headers["Retry-After"] == "20"


@pytest.mark.parametrize(
    ("now_s", "seconds"), [(0, 86_400), (86_399.5, 1), (86_400 * 9 + 1, 86_399)]
)
def test_the_day_ends_at_midnight(now_s: float, seconds: int) -> None:
    assert seconds_to_midnight(now_s) == seconds
