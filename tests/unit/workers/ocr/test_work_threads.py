import threading

import pytest

from workers.ocr.work_threads import WorkThreads


def ignore(_: BaseException) -> None:
    """Some tests do not look at errors."""


def test_the_most_urgent_call_is_next_and_equals_keep_their_order() -> None:
    done: list[str] = []
    gate, finished = threading.Event(), threading.Event()
    threads = WorkThreads(1, on_error=ignore)
    threads.submit((0,), lambda: gate.wait(10) and None)

    for urgency, name in [((2, 0), "c"), ((1, 5), "a"), ((1, 5), "b")]:
        threads.submit(urgency, lambda name=name: done.append(name))  # type: ignore[misc]  bound now
    threads.submit((9,), finished.set)
    gate.set()

    assert finished.wait(10)
    assert done == ["a", "b", "c"]
    threads.close()


def test_an_error_is_told_once_and_ends_the_work() -> None:
    told: list[BaseException] = []
    threads = WorkThreads(2, on_error=told.append)
    error = KeyError("lost")

    def fail() -> None:
        raise error

    threads.submit((0,), fail)
    threads.close()
    threads.submit((0,), fail)

    assert told in ([error], [])  # closed before the call was taken, or after


def test_an_error_reaches_its_owner() -> None:
    told = threading.Event()
    threads = WorkThreads(2, on_error=lambda _: told.set())

    threads.submit((0,), lambda: int("none") and None)

    assert told.wait(10)
    threads.close()


@pytest.mark.parametrize("count", [1, 4])
def test_closing_waits_for_the_running_calls_only(count: int) -> None:
    started, release = threading.Event(), threading.Event()
    done: list[int] = []
    threads = WorkThreads(count, on_error=ignore)

    def first() -> None:
        started.set()
        release.wait(10)
        done.append(1)

    threads.submit((0,), first)
    assert started.wait(10)
    closer = threading.Thread(target=threads.close)
    closer.start()
    release.set()
    closer.join(10)

    assert done == [1]
    assert not closer.is_alive()
