import threading

from api.sparing_count import Counted, SparingCount
from db.errors import DatabaseUnavailableError
from tests.support.clock import Clock
from tests.support.processes import wait_until


class Counting:
    """Counts up, takes time for it, and may have no database."""

    def __init__(self, clock: Clock, *, takes_s: float = 0.0) -> None:
        self.clock = clock
        self.takes_s = takes_s
        self.is_away = False
        self.asked = 0

    def __call__(self) -> int:
        self.asked += 1
        self.clock.now_s += self.takes_s
        if self.is_away:
            raise DatabaseUnavailableError("away")
        return self.asked


def test_a_count_is_used_for_as_long_as_it_may() -> None:
    clock = Clock()
    counting = Counting(clock)
    count = SparingCount(counting, cache_s=10, share=50, longest_s=600, clock=clock)

    first = count.get()
    clock.now_s += 9
    still = count.get()
    clock.now_s += 1
    second = count.get()

    assert (first, still, second) == (Counted(1, 0), Counted(1, 9), Counted(2, 0))


def test_a_count_that_took_long_is_used_for_fifty_times_as_long() -> None:
    clock = Clock()
    counting = Counting(clock, takes_s=2)
    count = SparingCount(counting, cache_s=10, share=50, longest_s=600, clock=clock)

    count.get()
    clock.now_s += 99
    count.get()
    asked_before = counting.asked
    clock.now_s += 2
    count.get()

    assert (asked_before, counting.asked) == (1, 2)


def test_a_database_that_let_everybody_wait_is_asked_again_before_long() -> None:
    clock = Clock()
    counting = Counting(clock, takes_s=30)
    counting.is_away = True
    count = SparingCount(counting, cache_s=10, share=50, longest_s=600, clock=clock)

    count.get()
    counting.is_away = False
    clock.now_s += 599
    before = count.get()
    clock.now_s += 1
    after = count.get()

    assert (before, after) == (None, Counted(2, 30))


def test_the_last_count_stands_while_the_database_is_away_and_says_its_age() -> None:
    clock = Clock()
    counting = Counting(clock)
    count = SparingCount(counting, cache_s=10, share=50, longest_s=600, clock=clock)
    count.get()
    counting.is_away = True

    clock.now_s += 60

    assert count.get() == Counted(1, 60)


def test_without_a_database_there_is_no_count_and_it_is_not_asked_again_at_once() -> None:
    clock = Clock()
    counting = Counting(clock)
    counting.is_away = True
    count = SparingCount(counting, cache_s=10, share=50, longest_s=600, clock=clock)

    assert (count.get(), count.get(), counting.asked) == (None, None, 1)


def test_nobody_waits_long_for_a_count_and_it_is_there_for_the_next() -> None:
    go_on, is_done = threading.Event(), threading.Event()

    def slow() -> int:
        assert go_on.wait(30)
        is_done.set()
        return 1

    count = SparingCount(slow, cache_s=10, share=50, longest_s=600, wait_s=0.05)
    began, meanwhile = count.get(), count.get()

    go_on.set()
    assert is_done.wait(30)
    wait_until(lambda: count.get() is not None)

    assert (began, meanwhile) == (None, None)
