"""Makes the faults of a plan happen, each at its time, and ends those that last."""

import heapq
import itertools
import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from bench.faults.s3_proxy import Trouble, Weather
from cli.storm import broker
from cli.storm.fleet import API, LEASE_S, RECOGNIZER, SPLITTER, StormFleet
from cli.storm.plan import PlannedFault
from cli.storm.servers import AT_ONCE, IN_ORDER, LIKE_A_LOST_MACHINE, StormServers

_LONGEST_ABSENCE_S: Final = 2.0
_S3_TROUBLE_S: Final = 4.0
_S3_SHARE: Final = 0.5
_AFTER_LEASE_S: Final = 4.0
_TRIES: Final = 10
_TRY_AGAIN_S: Final = 1.0


class StormFaults:
    """Fires the faults of one storm; ``look`` is to be called all the time, by the main thread.

    Args:
        fleet: is hurt.
        servers: likewise.
        log_file: gets a line of JSON for each fault.

    Attributes:
        fired: how often each kind happened.
    """

    def __init__(self, fleet: StormFleet, servers: StormServers, *, log_file: Path) -> None:
        self.fired: Counter[str] = Counter()
        self._fleet = fleet
        self._servers = servers
        self._log_file = log_file
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._started_s = 0.0
        self._kinds: Mapping[str, Callable[[float], str | None]] = {
            "kill_recognizer_child": lambda strength: self._kill_child(RECOGNIZER, strength),
            "kill_splitter_child": lambda strength: self._kill_child(SPLITTER, strength),
            "freeze_recognizer_child": self._freeze_child,
            "kill_recognizer_group": lambda _: self._kill_group(RECOGNIZER),
            "kill_splitter_group": lambda _: self._kill_group(SPLITTER),
            "kill_api": lambda _: self._kill_group(API),
            "kill_reconciler": self._kill_reconciler,
            "kill_redis": self._kill_redis,
            "flush_redis": lambda _: self._on_redis(broker.flush),
            "disconnect_redis": lambda _: self._on_redis(broker.disconnect_all),
            "restart_postgres": lambda _: self._restart_postgres(IN_ORDER),
            "crash_postgres": self._crash_postgres,
            "s3_refuses": lambda strength: self._trouble_s3("refuse", strength),
            "s3_slow": lambda strength: self._trouble_s3("slow", strength),
            "s3_cuts": lambda strength: self._trouble_s3("cut", strength),
        }

    def begin(self, plan: Sequence[PlannedFault]) -> None:
        """Start the clock of a plan."""
        self._started_s = time.monotonic()
        for fault in plan:
            self._later(fault.at_s, lambda fault=fault: self._fire(fault))  # type: ignore[misc] # mypy knows no default in a lambda

    def look(self) -> None:
        """Do what is due."""
        while self._agenda and self._agenda[0][0] <= time.monotonic() - self._started_s:
            heapq.heappop(self._agenda)[2]()

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to happen or to end."""
        return not self._agenda

    def _later(self, at_s: float, what: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (at_s, next(self._order), what))

    def _in(self, delay_s: float, what: Callable[[], None]) -> None:
        self._later(time.monotonic() - self._started_s + delay_s, what)

    def _fire(self, fault: PlannedFault, *, tries_left: int = _TRIES) -> None:
        done = self._kinds[fault.kind](fault.strength)
        if done is None and tries_left:  # a pool that was just killed has no children yet
            self._in(_TRY_AGAIN_S, lambda: self._fire(fault, tries_left=tries_left - 1))
            return
        if done is not None:
            self.fired[fault.kind] += 1
        line = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "at_s": round(time.monotonic() - self._started_s, 2),
            "planned_s": fault.at_s,
            "fault": fault.kind,
            "done": done or "nothing there to hurt",
        }
        with self._log_file.open("a", encoding="utf-8") as log:
            log.write(json.dumps(line) + "\n")

    def _kill_child(self, name: str, strength: float) -> str | None:
        children = self._fleet.pool_children(name)
        if not children:
            return None
        child = children[int(strength * len(children))]
        with suppress(ProcessLookupError):
            os.kill(child.pid, signal.SIGKILL)
        return f"{name}: child {child.pid} killed"

    def _freeze_child(self, strength: float) -> str | None:
        children = self._fleet.pool_children(RECOGNIZER)
        if not children:
            return None
        child = children[int(strength * len(children))]
        frozen_s = LEASE_S + 1 + strength * _AFTER_LEASE_S

        def thaw() -> None:
            if child.is_alive():
                os.kill(child.pid, signal.SIGCONT)

        with suppress(ProcessLookupError):
            os.kill(child.pid, signal.SIGSTOP)
        self._in(frozen_s, thaw)
        return f"{RECOGNIZER}: child {child.pid} stopped for {frozen_s:.1f} s"

    def _kill_group(self, name: str) -> str:
        pid = self._fleet.pid(name)
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        return f"{name}: group {pid} killed"

    def _kill_reconciler(self, strength: float) -> str | None:
        names = self._fleet.reconcilers
        return self._kill_group(names[int(strength * len(names))]) if names else None

    def _on_redis(self, do: Callable[[str], None]) -> str:
        do(self._servers.valkey.url())
        return "done"

    def _kill_redis(self, strength: float) -> str:
        valkey = self._servers.valkey
        absence_s = strength * _LONGEST_ABSENCE_S
        valkey.kill()
        self._in(absence_s, lambda: self._servers.restart(valkey))
        return f"killed, back after {absence_s:.1f} s"

    def _restart_postgres(self, signal_number: int) -> str:
        # At once: while the database is away nothing goes on that a fault could hit.
        self._servers.stop_postgres(signal_number)
        self._servers.restart(self._servers.postgres)
        return f"ended by {signal.Signals(signal_number).name}, and started again"

    def _crash_postgres(self, strength: float) -> str:
        return self._restart_postgres(AT_ONCE if strength < 0.5 else LIKE_A_LOST_MACHINE)  # noqa: PLR2004 - one half

    def _trouble_s3(self, trouble: Trouble, strength: float) -> str:
        proxy = self._servers.proxy
        lasts_s = 1 + strength * _S3_TROUBLE_S
        weather = Weather(trouble, share=_S3_SHARE)
        proxy.weather = weather

        def end() -> None:
            if proxy.weather is weather:
                proxy.weather = Weather()

        self._in(lasts_s, end)
        return f"for {lasts_s:.1f} s, one request in two"
