"""What a fleet does while it works off a backlog: documents, messages, memory, rows."""

import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from itertools import pairwise
from statistics import fmean
from typing import Any, Final

import numpy as np
from redis import Redis

from bench.errors import BenchError
from bench.machine import describe_machine, yardstick_ms
from bench.process_usage import usage_of_tree
from db import usage
from db.engine import Database
from workers.celeryconfig import PRIORITIES, QUEUES

PAGES_PER_CHUNK: Final = 4  # on a CPU, by default
_PERIOD_S: Final = 5.0
_KEY_PREFIX: Final = "pagefleet:"  # the default, which the fleet of a benchmark keeps
_TENTHS: Final = 10
# A fleet that finishes nothing for so long is stuck, on any machine.
_STUCK_S: Final = 300.0


class FleetWatch:
    """Takes samples of one fleet's servers.

    Args:
        database: of the fleet; closed with this.
        redis_url: of its broker.
    """

    def __init__(self, database: Database, *, redis_url: str) -> None:
        self._database = database
        self._redis = Redis.from_url(redis_url)

    def sample(self) -> dict[str, Any]:
        """Return finished documents, messages by queue, the broker's memory, rows written.

        ``cpu_s`` is what this process and all below it used: the fleet and its servers.
        ``yardstick_ms`` is how slow the machine is at the moment.
        """
        with self._database.transaction() as session:
            finished = usage.count_finished(session)
            counters = usage.database_usage(session)
        return {
            "finished": finished,
            "cpu_s": usage_of_tree(os.getpid()).cpu_s,
            "yardstick_ms": round(yardstick_ms(), 2),
            "redis_bytes": self._redis.info("memory")["used_memory"],
            "messages": {queue: self._messages(queue) for queue in QUEUES},
            "unacked": self._redis.hlen(f"{_KEY_PREFIX}unacked"),
            "database": asdict(counters),
        }

    def until_finished(
        self, count: int, *, on_finished: Callable[[int], None], stop: threading.Event
    ) -> list[dict[str, Any]]:
        """Take a sample every five seconds until so many documents are finished.

        Raises:
            BenchError: no document was finished for minutes, or ``stop`` was set.
        """
        started_s = moved_s = time.monotonic()
        samples = [{"seconds": 0.0, **self.sample()}]
        while samples[-1]["finished"] < count:
            if stop.wait(_PERIOD_S):
                raise BenchError("stopped before all documents were finished")
            now_s = time.monotonic()
            samples.append({"seconds": round(now_s - started_s, 1), **self.sample()})
            if samples[-1]["finished"] > samples[-2]["finished"]:
                moved_s = now_s
            elif now_s - moved_s > _STUCK_S:
                raise BenchError(
                    f"no document was finished for {_STUCK_S:g} s, at {samples[-1]['finished']} of"
                    f" {count}; the logs of the fleet say why"
                )
            on_finished(samples[-1]["finished"])
        return samples

    def finish_times_s(self) -> list[float]:
        """Return when each document was finished, in order, as Unix time."""
        with self._database.transaction() as session:
            return usage.finish_times_s(session)

    def close(self) -> None:
        """Close the connections."""
        self._redis.close()
        self._database.dispose()

    def _messages(self, queue: str) -> int:
        steps = sorted(PRIORITIES.values())
        lists = [queue, *(f"{queue}:{step}" for step in steps if step)]
        return sum(self._redis.llen(f"{_KEY_PREFIX}{name}") for name in lists)


def scale_record(
    samples: Sequence[dict[str, Any]], finish_times_s: Sequence[float], *, title: str
) -> dict[str, Any]:
    """Return the curve of one backlog with its figures.

    Rates are from the times in the rows and begin with the first finished document, so that
    starting processes is not counted; ``last_to_first`` compares the last tenth of the documents
    with the first, and ``last_to_first_at_equal_speed`` multiplies it by how much slower a fixed
    piece of work had become meanwhile. Processor time is counted from sample to sample, so short
    backlogs give coarse figures.
    """
    rates = _rates_of_tenths(finish_times_s)
    yardsticks = _yardstick_ms_of_tenths(samples)
    last_to_first = rates[-1] / rates[0]
    first, last = samples[0]["database"], samples[-1]["database"]
    count = len(finish_times_s)
    seconds = finish_times_s[-1] - finish_times_s[0]
    written = sum(
        last[name] - first[name] for name in ("rows_inserted", "rows_updated", "rows_deleted")
    )
    return {
        "title": title,
        "machine": describe_machine(),
        "documents": count,
        "documents_per_s": round(count / seconds, 2),
        "documents_per_s_by_tenth": [round(rate, 2) for rate in rates],
        "last_to_first": round(last_to_first, 3),
        "last_to_first_at_equal_speed": round(last_to_first * yardsticks[-1] / yardsticks[0], 3),
        "yardstick_ms_by_tenth": [round(each, 1) for each in yardsticks],
        "cpu_ms_per_document_by_tenth": [round(each, 1) for each in _cpu_ms_of_tenths(samples)],
        "redis_peak_bytes": max(sample["redis_bytes"] for sample in samples),
        "messages_peak": {
            queue: max(sample["messages"][queue] for sample in samples)
            for queue in samples[0]["messages"]
        },
        "unacked_peak": max(sample["unacked"] for sample in samples),
        "connections_peak": max(sample["database"]["connections"] for sample in samples),
        "rows_written_per_document": round(written / count, 1),
        "rows_written_per_s": round(written / seconds, 1),
        "wal_bytes_per_document": round((last["wal_bytes"] - first["wal_bytes"]) / count),
        "transactions_per_document": round((last["transactions"] - first["transactions"]) / count),
        "database_bytes_per_document": round(last["size_bytes"] / count),
        "samples": list(samples),
    }


def fleet_record(finish_times_s: Sequence[float], *, bare: tuple[float, float]) -> dict[str, Any]:
    """Compare a fleet that worked off documents of one chunk each with the bare core.

    Args:
        finish_times_s: of its documents; the time until the first was finished is not counted,
            in which processes start and models load.
        bare: pages/s of the core alone, before and after.
    """
    documents = len(finish_times_s) - 1
    rate = documents * PAGES_PER_CHUNK / (finish_times_s[-1] - finish_times_s[0])
    return {
        "machine": describe_machine(),
        "pages": documents * PAGES_PER_CHUNK,
        "fleet_pages_per_s": round(rate, 3),
        "bare_pages_per_s": [round(each, 3) for each in bare],
        "ratio": round(rate / fmean(bare), 3),
    }


def _cpu_ms_of_tenths(samples: Sequence[dict[str, Any]]) -> list[float]:
    # The last sample of each count: what it takes to start is no document's.
    cpu_s_at = {sample["finished"]: sample["cpu_s"] for sample in samples}
    finished = list(cpu_s_at)
    bounds = np.linspace(finished[0], finished[-1], _TENTHS + 1)
    cpu_s = np.interp(bounds, finished, list(cpu_s_at.values()))
    documents = max(float(bounds[1] - bounds[0]), 1.0)
    return [float(1e3 * each / documents) for each in np.diff(cpu_s)]


def _yardstick_ms_of_tenths(samples: Sequence[dict[str, Any]]) -> list[float]:
    """Return the mean over each tenth of the documents, or what lies around a tenth without any."""
    finished = [sample["finished"] for sample in samples]
    taken_ms = [sample["yardstick_ms"] for sample in samples]
    bounds = np.linspace(finished[0], finished[-1], _TENTHS + 1)
    means = []
    for start, stop in pairwise(bounds):
        inside = [
            taken for count, taken in zip(finished, taken_ms, strict=True) if start < count <= stop
        ]
        means.append(fmean(inside or [float(np.interp((start + stop) / 2, finished, taken_ms))]))
    return means


def _rates_of_tenths(times_s: Sequence[float]) -> list[float]:
    bounds = [round(share * (len(times_s) - 1) / _TENTHS) for share in range(_TENTHS + 1)]
    return [
        (stop - start) / max(times_s[stop] - times_s[start], 1e-3)
        for start, stop in pairwise(bounds)
    ]
