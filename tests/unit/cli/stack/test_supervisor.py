import threading
from dataclasses import dataclass, field

import pytest

from cli.stack.errors import ServerStartError, StackStoppedError
from cli.stack.supervisor import Supervisor


@dataclass
class RecordedProgram:
    """Runs when told, and writes down what it was told."""

    name: str
    journal: list[str]
    code: int | None = None
    fails_to_start: int = 0
    looks_until_ready: int = 0
    clock: "HandClock | None" = None  # goes on by a second at each look
    starts: int = field(default=0, init=False)
    log_looks: int = field(default=0, init=False)

    def start(self) -> None:
        self._begin("start")

    def is_ready(self) -> bool:
        self.journal.append(f"ask {self.name} whether it serves")
        if self.clock is not None:
            self.clock.now_s += 1
        self.looks_until_ready -= 1
        return self.looks_until_ready < 0

    def not_ready(self, timeout_s: float) -> ServerStartError:
        return ServerStartError(f"{self.name} did not answer within {timeout_s:g} s")

    def exit_code(self) -> int | None:
        return self.code

    def limit_log(self) -> None:
        self.log_looks += 1

    def restart(self) -> None:
        self._begin("restart")

    def ask_to_stop(self) -> None:
        self.journal.append(f"ask {self.name}")

    def stop(self) -> None:
        self.journal.append(f"stop {self.name}")

    def _begin(self, word: str) -> None:
        self.journal.append(f"{word} {self.name}")
        if self.fails_to_start:
            self.fails_to_start -= 1
            raise ServerStartError("no port")
        self.code = None
        self.starts += 1


@dataclass
class HandClock:
    now_s: float = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def journal() -> list[str]:
    return []


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def lines() -> list[str]:
    return []


@pytest.fixture
def stop() -> threading.Event:
    return threading.Event()


@pytest.fixture
def supervisor(lines: list[str], stop: threading.Event, clock: HandClock) -> Supervisor:
    return Supervisor(lines.append, stop, clock=clock)


def pass_time(supervisor: Supervisor, clock: HandClock, seconds: float) -> None:
    clock.now_s += seconds
    supervisor.look()


def test_a_group_starts_together_before_any_of_it_is_waited_for(
    supervisor: Supervisor, journal: list[str]
) -> None:
    supervisor.start([RecordedProgram("a", journal), RecordedProgram("b", journal)])

    assert journal == [
        "start a",
        "start b",
        "ask a whether it serves",
        "ask b whether it serves",
    ]


def test_each_is_reported_as_it_comes_with_its_own_time(
    supervisor: Supervisor, journal: list[str], lines: list[str], clock: HandClock
) -> None:
    slow = RecordedProgram("slow", journal, looks_until_ready=3, clock=clock)

    supervisor.start([slow, RecordedProgram("quick", journal)])

    assert lines == ["starting slow, quick", "quick: running (1.0 s)", "slow: running (4.0 s)"]


def test_what_is_waited_for_is_said_now_and_then(
    supervisor: Supervisor, journal: list[str], lines: list[str], clock: HandClock
) -> None:
    supervisor.start([
        RecordedProgram("slow", journal, looks_until_ready=21, clock=clock),
        RecordedProgram("quick", journal),
    ])

    assert [line for line in lines if line.startswith("waiting")] == [
        "waiting for slow (10 s)",
        "waiting for slow (20 s)",
    ]


def test_what_does_not_come_is_an_error(
    supervisor: Supervisor, journal: list[str], clock: HandClock
) -> None:
    never = RecordedProgram("never", journal, looks_until_ready=99, clock=clock)

    with pytest.raises(ServerStartError, match="never did not answer within 5 s"):
        supervisor.start([RecordedProgram("quick", journal), never], ready_timeout_s=5)


def test_the_last_group_stops_first_and_each_in_reverse(
    supervisor: Supervisor, journal: list[str]
) -> None:
    supervisor.start([RecordedProgram("server", journal)])
    supervisor.start([RecordedProgram("a", journal), RecordedProgram("b", journal)])
    journal.clear()

    supervisor.stop()

    assert journal == ["ask b", "ask a", "stop b", "stop a", "ask server", "stop server"]


def test_what_was_started_before_a_failure_is_stopped(
    supervisor: Supervisor, journal: list[str]
) -> None:
    group = [RecordedProgram("a", journal), RecordedProgram("b", journal, fails_to_start=1)]
    with pytest.raises(ServerStartError):
        supervisor.start(group)
    journal.clear()

    supervisor.stop()

    assert journal == ["ask a", "stop a"]


def test_nothing_starts_once_everything_is_to_end(
    supervisor: Supervisor, stop: threading.Event, journal: list[str]
) -> None:
    stop.set()

    with pytest.raises(StackStoppedError):
        supervisor.start([RecordedProgram("a", journal)])

    assert journal == []


def test_a_program_that_dies_is_started_again_after_a_second(
    supervisor: Supervisor, journal: list[str], lines: list[str], clock: HandClock
) -> None:
    program = RecordedProgram("a", journal)
    supervisor.start([program])
    program.code = -9

    supervisor.look()
    pass_time(supervisor, clock, 0.9)
    starts_before = program.starts
    pass_time(supervisor, clock, 0.2)

    assert starts_before == 1
    assert program.starts == 2
    assert lines[-2:] == ["a: ended with -9, starts again in 1 s", "a: started again"]


def test_the_log_of_what_runs_is_kept_small(supervisor: Supervisor, journal: list[str]) -> None:
    program = RecordedProgram("a", journal)
    supervisor.start([program])

    supervisor.look()

    assert program.log_looks == 1


def test_the_pause_doubles_up_to_thirty_seconds(
    supervisor: Supervisor, journal: list[str], lines: list[str], clock: HandClock
) -> None:
    supervisor.start([RecordedProgram("a", journal)])
    crashing = RecordedProgram("b", journal)
    supervisor.start([crashing])
    lines.clear()

    for _ in range(7):
        crashing.code = 1
        supervisor.look()
        pass_time(supervisor, clock, 31)

    pauses = [line.partition("again in ")[2] for line in lines if "again in" in line]
    assert pauses == ["1 s", "2 s", "4 s", "8 s", "16 s", "30 s", "30 s"]


def test_running_for_a_minute_wipes_out_earlier_failures(
    supervisor: Supervisor, journal: list[str], lines: list[str], clock: HandClock
) -> None:
    program = RecordedProgram("a", journal)
    supervisor.start([program])
    program.code = 1
    supervisor.look()
    pass_time(supervisor, clock, 2)
    pass_time(supervisor, clock, 61)
    program.code = 1

    supervisor.look()

    assert lines[-1] == "a: ended with 1, starts again in 1 s"


def test_a_restart_that_fails_is_tried_again(
    supervisor: Supervisor, journal: list[str], lines: list[str], clock: HandClock
) -> None:
    program = RecordedProgram("a", journal)
    supervisor.start([program])
    program.code = 1
    program.fails_to_start = 1
    supervisor.look()

    pass_time(supervisor, clock, 2)
    failed = lines[-1]
    pass_time(supervisor, clock, 3)

    assert failed == "a: did not start: no port, starts again in 2 s"
    assert lines[-1] == "a: started again"
