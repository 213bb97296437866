"""Whether the servers that the API needs answer."""

import math
import time
from collections.abc import Callable, Mapping

import anyio
import anyio.to_thread
import structlog
from anyio import CapacityLimiter

log = structlog.get_logger(__name__)


class Readiness:
    """Asks all servers at once, and not again within ``cache_s`` seconds."""

    def __init__(
        self, probes: Mapping[str, Callable[[], None]], *, timeout_s: float, cache_s: float
    ) -> None:
        self._probes = probes
        self._timeout_s = timeout_s
        self._cache_s = cache_s
        self._asked_at = -math.inf
        self._outcome: dict[str, bool] = {}
        self._lock = anyio.Lock()
        # A probe that hangs keeps its thread: one of its own, so that it takes nobody else's.
        self._threads = {name: CapacityLimiter(1) for name in probes}

    async def check(self) -> Mapping[str, bool]:
        """Return for each server whether it answered in time."""
        async with self._lock:
            if time.monotonic() - self._asked_at >= self._cache_s:
                self._outcome = dict.fromkeys(self._probes, False)
                async with anyio.create_task_group() as group:
                    for name in self._probes:
                        group.start_soon(self._ask, name)
                self._asked_at = time.monotonic()
            return dict(self._outcome)

    async def _ask(self, name: str) -> None:
        with anyio.move_on_after(self._timeout_s):
            self._outcome[name] = await anyio.to_thread.run_sync(
                _answers,
                name,
                self._probes[name],
                abandon_on_cancel=True,
                limiter=self._threads[name],
            )


def _answers(name: str, probe: Callable[[], None]) -> bool:
    try:
        probe()
    except Exception as error:  # noqa: BLE001 - any failure of a server is an outcome here
        log.warning("server did not answer", server=name, error=type(error).__name__)
        return False
    return True
