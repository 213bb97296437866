import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from cli.ingest.patience import StoppedError
from cli.ingest.turns import Turns


def test_turns_come_in_the_order_in_which_they_were_taken() -> None:
    turns = Turns(threading.Event())
    taken = [turns.take() for _ in range(3)]
    order: list[int] = []

    def work(number: int) -> None:
        taken[number].wait()
        order.append(number)
        taken[number].pass_on()

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, (2, 1, 0)))

    assert order == [0, 1, 2]


def test_a_turn_that_is_passed_on_unused_holds_up_nobody() -> None:
    turns = Turns(threading.Event())
    first, second, third = (turns.take() for _ in range(3))

    second.pass_on()
    first.pass_on()
    first.pass_on()

    third.wait()


def test_nobody_waits_for_a_turn_once_the_run_is_to_end() -> None:
    stop = threading.Event()
    turns = Turns(stop)
    turns.take()
    stop.set()

    with pytest.raises(StoppedError):
        turns.take().wait()
