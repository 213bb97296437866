"""Rounds: every contender reads the same few pages, one after the other, and then the next few.

The machine gets slower and faster over minutes (heat, other users). Taking turns, and another one
first in each round, lets that fall on all alike.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Final

from bench.contenders import Contender
from bench.page_files import BenchPage
from bench.process_usage import usage_of_tree
from bench.program_process import ProgramProcess
from bench.programs.answering import PageAnswer

_LOAD_TIMEOUT_S: Final = 300.0
_PAGE_TIMEOUT_S: Final = 300.0


@dataclass(slots=True)
class Measurement:
    """What one contender did in all rounds; loading and warming up are not in it.

    Attributes:
        contender: who.
        program: its name and version, as it says.
        seconds: wall clock, the sum over rounds.
        cpu_s: processor seconds of all its processes.
        peak_bytes: see ``process_usage.Usage``; the sum over its processes.
        answers: by page id.
    """

    contender: Contender
    program: str
    seconds: float = 0.0
    cpu_s: float = 0.0
    peak_bytes: int = 0
    answers: dict[int, PageAnswer] = field(default_factory=dict)


class RunningContender:
    """The processes of one contender, loaded and warm."""

    def __init__(self, contender: Contender, processes: Sequence[ProgramProcess]) -> None:
        self._processes = processes
        self.measurement = Measurement(contender, processes[0].name)

    def warm_up(self, page: BenchPage) -> None:
        """Let every process read one page, untimed: first runs make plans and fill caches."""
        for process in self._processes:
            process.ask([page.request])
        for process in self._processes:
            process.answers(deadline=time.monotonic() + _PAGE_TIMEOUT_S)

    def read(self, pages: Sequence[BenchPage]) -> None:
        """Read a round of pages with all processes at a time, and measure it.

        A ``BenchError`` passes through: a process ended, or took too long.
        """
        shares = _dealt(pages, len(self._processes))
        cpu_before = self._cpu_s()
        started = time.monotonic()
        for process, share in zip(self._processes, shares, strict=True):
            process.ask([page.request for page in share])
        answers = [
            answer
            for process, share in zip(self._processes, shares, strict=True)
            for answer in process.answers(deadline=started + _PAGE_TIMEOUT_S * (len(share) + 1))
        ]
        measured = self.measurement
        measured.seconds += time.monotonic() - started
        measured.cpu_s += self._cpu_s() - cpu_before
        measured.peak_bytes = max(
            measured.peak_bytes, sum(process.peak_bytes for process in self._processes)
        )
        measured.answers.update((answer.id, answer) for answer in answers)

    def _cpu_s(self) -> float:
        return sum(usage_of_tree(process.pid).cpu_s for process in self._processes)


@contextmanager
def running(contender: Contender) -> Iterator[RunningContender]:
    """Start the processes of a contender and wait until they have their models.

    A ``BenchError`` passes through: one could not be started.
    """
    with ExitStack() as stack:
        processes = [
            stack.enter_context(ProgramProcess(command, environment=contender.environment))
            for command in contender.commands
        ]
        for process in processes:
            process.wait_until_ready(timeout_s=_LOAD_TIMEOUT_S)
        yield RunningContender(contender, processes)


def take_turns(
    contenders: Sequence[RunningContender],
    pages: Sequence[BenchPage],
    *,
    pages_per_round: int,
    on_turn: Callable[[str, int], None],
) -> None:
    """Let all contenders read all pages, a round at a time.

    Args:
        contenders: loaded.
        pages: what is read; the first also warms up.
        pages_per_round: how many one contender reads before the next one's turn.
        on_turn: told a contender's name and how many page readings are done, of all together.
    """
    for contender in contenders:
        on_turn(f"{contender.measurement.contender.name} warms up", 0)
        contender.warm_up(pages[0])
    done = 0
    for number, first in enumerate(range(0, len(pages), pages_per_round)):
        part = pages[first : first + pages_per_round]
        turn = number % len(contenders)
        for contender in (*contenders[turn:], *contenders[:turn]):
            on_turn(contender.measurement.contender.name, done)
            contender.read(part)
            done += len(part)
    on_turn("", done)


def _dealt(pages: Sequence[BenchPage], count: int) -> list[list[BenchPage]]:
    """Deal pages out so that each share has about as many pixels; documents keep their order."""
    shares: list[list[BenchPage]] = [[] for _ in range(count)]
    loads = [0] * count
    for page in sorted(pages, key=lambda page: -page.pixel_count):
        lightest = loads.index(min(loads))
        shares[lightest].append(page)
        loads[lightest] += page.pixel_count
    return [sorted(share, key=lambda page: page.request.id) for share in shares]
