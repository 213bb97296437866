"""The processes of a storm's fleet: started, watched, and restarted at once when they die."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from bench.process_usage import ProcessMark, pool_children_of, usage_of_tree
from cli.stack.leash import Leash
from cli.stack.program import Program, ProgramSpec

API: Final = "api"
RECOGNIZER: Final = "worker-recognize"
SPLITTER: Final = "worker-split"
RECONCILERS: Final = ("reconcile-1", "reconcile-2")
LEASE_S: Final = 5.0
_CHECKOUT: Final = Path(__file__).resolve().parents[2]
_HOOKS: Final = _CHECKOUT / "bench" / "faults" / "hook"
_READY_TIMEOUT_S: Final = 180.0
_GRACE_S: Final = 15.0
_BYTES_PER_MIB: Final = 2**20

_COMMANDS: Final[Mapping[str, tuple[str, ...]]] = {
    API: ("api",),
    RECOGNIZER: ("worker", "--queues", "recognize", "--slots", "2"),
    SPLITTER: ("worker", "--queues", "split,assemble", "--slots", "1"),
    **dict.fromkeys(RECONCILERS, ("reconcile",)),
}

# Short, so that what was killed goes on soon; and attempts without end, as the kills are the
# storm's and not the documents' fault.
_SETTINGS: Final[Mapping[str, str]] = {
    "PAGEFLEET_MAX_ATTEMPTS": "100",
    "PAGEFLEET_LEASE_S": f"{LEASE_S:g}",
    "PAGEFLEET_DISPATCH_GRACE_S": "2",
    "PAGEFLEET_RETRY_DELAY_S": "1",
    "PAGEFLEET_SWEEP_INTERVAL_S": "1",
    "PAGEFLEET_SOFT_SHUTDOWN_S": "5",
    # One page each, so that a document of three pages has three chunks to be counted.
    "PAGEFLEET_CHUNK_PAGES": "1",
    "PAGEFLEET_TASK_HARD_LIMIT_S": "120",
    "PAGEFLEET_REDIS_VISIBILITY_TIMEOUT_S": "240",
    "PAGEFLEET_DEVICE": "cpu",
    # A few files are sent again and again, each time to be read.
    "PAGEFLEET_DOCUMENT_CACHE": "false",
    "PAGEFLEET_PAGE_CACHE": "false",
    "PYTHONUNBUFFERED": "1",
}


class StormFleet:
    """One of each, and two reconcilers, each in a process group; use it from the main thread.

    Args:
        environment: of all of them.
        logs: for a log of each.
        drop_file: says what share of messages vanishes.
        leash: ends them when this process dies.
        with_reconciler: False leaves the reconcilers out.

    Attributes:
        restarts: how often each was started again.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        *,
        logs: Path,
        drop_file: Path,
        leash: Leash,
        with_reconciler: bool,
    ) -> None:
        names = [name for name in _COMMANDS if with_reconciler or name not in RECONCILERS]
        full = {
            **environment,
            **_SETTINGS,
            "PYTHONPATH": str(_HOOKS),
            "FAULT_HOOKS": "drop_publishes",
            "DROP_PUBLISHES_FILE": str(drop_file),
        }
        address = f"http://{full['PAGEFLEET_API_HOST']}:{full['PAGEFLEET_API_PORT']}"
        self.restarts = dict.fromkeys(names, 0)
        self._programs = {
            name: Program(
                ProgramSpec(
                    name=name,
                    argv=[sys.executable, "-m", "cli", *_COMMANDS[name]],
                    environment=full,
                    folder=_CHECKOUT,
                    ready_url=f"{address}/readyz" if name == API else None,
                    grace_s=_GRACE_S,
                ),
                logs_folder=logs,
                leash=leash,
            )
            for name in names
        }

    @property
    def reconcilers(self) -> list[str]:
        """The reconcilers that there are."""
        return [name for name in RECONCILERS if name in self._programs]

    def start(self) -> None:
        """Start all, and return once the API serves.

        Raises:
            ServerStartError: it does not.
        """
        for program in self._programs.values():
            program.start()
        self._programs[API].wait_ready(_READY_TIMEOUT_S)

    def tend(self) -> None:
        """Start again what has died."""
        for name, program in self._programs.items():
            program.limit_log()
            if program.exit_code() is not None:
                program.restart()
                self.restarts[name] += 1

    def pid(self, name: str) -> int:
        """Return the process that leads a group."""
        pid = self._programs[name].pid
        if pid is None:
            raise RuntimeError(f"{name} is not started")
        return pid

    def pool_children(self, name: str) -> list[ProcessMark]:
        """Return the processes in which a worker works."""
        return pool_children_of(self.pid(name))

    def resident_mib(self) -> dict[str, float]:
        """Return what each group holds in memory, with all below it."""
        return {
            name: resident_mib(program.pid)
            for name, program in self._programs.items()
            if program.pid is not None
        }

    def stop(self) -> None:
        """End all, in order when they can."""
        for program in self._programs.values():
            program.ask_to_stop()
        for program in self._programs.values():
            program.stop()


def resident_mib(pid: int) -> float:
    """Return what a process and all below it hold in memory."""
    return round(usage_of_tree(pid).resident_bytes / _BYTES_PER_MIB, 1)
