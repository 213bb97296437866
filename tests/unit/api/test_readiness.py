import threading
import time

import anyio

from api.readiness import Readiness


class Counted:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> None:
        self.calls += 1


def test_an_outcome_is_kept_for_a_while() -> None:
    probe = Counted()

    async def check_twice() -> None:
        readiness = Readiness({"database": probe}, timeout_s=1, cache_s=60)
        await readiness.check()
        await readiness.check()

    anyio.run(check_twice)

    assert probe.calls == 1


def test_an_old_outcome_is_asked_for_again() -> None:
    probe = Counted()

    async def check_twice() -> None:
        readiness = Readiness({"database": probe}, timeout_s=1, cache_s=0)
        await readiness.check()
        await readiness.check()

    anyio.run(check_twice)

    assert probe.calls == 2


def test_a_server_that_hangs_fails_in_time_and_holds_nobody_up() -> None:
    released = threading.Event()

    async def check() -> dict[str, bool]:
        probes = {"storage": lambda: released.wait(30) or None, "database": lambda: None}
        readiness = Readiness(probes, timeout_s=0.1, cache_s=0)  # type: ignore[arg-type] # a lambda's wait
        outcome = dict(await readiness.check())
        released.set()
        return outcome

    started_at = time.monotonic()
    outcome = anyio.run(check)

    assert outcome == {"storage": False, "database": True}
    assert time.monotonic() - started_at < 10


def test_all_servers_are_asked_at_once() -> None:
    both_ask = threading.Barrier(2, timeout=10)

    async def check() -> dict[str, bool]:
        readiness = Readiness(
            {"storage": lambda: _meet(both_ask), "database": lambda: _meet(both_ask)},
            timeout_s=10,
            cache_s=0,
        )
        return dict(await readiness.check())

    assert anyio.run(check) == {"storage": True, "database": True}


def _meet(barrier: threading.Barrier) -> None:
    barrier.wait()
