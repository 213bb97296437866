import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cli.stack.child_process import (
    ChildCommand,
    ChildProcess,
    cut_log,
    last_lines,
    rotate_log,
    run_to_end,
)
from cli.stack.errors import ProgramTimeoutError, ServerStartError
from cli.stack.leash import Leash
from tests.support.processes import are_gone, read_line, running_python, wait_until

Run = Callable[[str], ChildProcess]


@pytest.fixture
def log_file(tmp_path: Path) -> Path:
    return tmp_path / "child.log"


@pytest.fixture
def run(tmp_path: Path, log_file: Path, leash: Leash) -> Iterator[Run]:
    """Runs Python code as a child, and ends it."""
    children: list[ChildProcess] = []

    def run(code: str) -> ChildProcess:
        command = ChildCommand(
            argv=[sys.executable, "-c", code],
            environment={"ONLY": "this"},
            log_file=log_file,
            folder=tmp_path,
        )
        children.append(ChildProcess(command, leash))
        return children[-1]

    yield run
    for child in children:
        child.kill()


def test_a_child_gets_the_given_environment_and_nothing_else(run: Run, log_file: Path) -> None:
    child = run("import os; print(sorted(k for k in os.environ if k != 'LC_CTYPE'))")

    assert child.wait(20) == 0
    assert log_file.read_text() == "['ONLY']\n"


def test_a_log_past_the_limit_is_cut_while_its_program_writes(run: Run, log_file: Path) -> None:
    child = run(
        "import os, time\n"
        "print('before', flush=True)\n"
        "while os.stat('child.log').st_size: time.sleep(0.01)\n"
        "print('after', flush=True)"
    )
    wait_until(lambda: log_file.read_text() == "before\n")

    cut_log(log_file, limit_bytes=6)

    assert child.wait(20) == 0
    assert log_file.read_text() == "after\n"
    assert log_file.with_name("child.log.1").read_text() == "before\n"


def test_a_log_below_the_limit_is_not_cut(log_file: Path) -> None:
    log_file.write_text("line\n")

    cut_log(log_file, limit_bytes=5)
    cut_log(log_file.with_name("missing.log"))

    assert log_file.read_text() == "line\n"


def test_output_is_appended_with_errors_in_their_place(run: Run, log_file: Path) -> None:
    log_file.write_text("before\n")

    child = run("import sys; print('out', flush=True); print('error', file=sys.stderr)")

    assert child.wait(20) == 0
    assert log_file.read_text() == "before\nout\nerror\n"


def test_a_child_that_ignores_the_request_is_killed_after_its_grace(
    run: Run, log_file: Path
) -> None:
    child = run(
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print('up', flush=True); time.sleep(600)"
    )
    wait_until(lambda: "up" in log_file.read_text())

    child.stop(grace_s=0.1)

    assert child.exit_code() == -signal.SIGKILL


def test_a_child_is_asked_once(run: Run, log_file: Path) -> None:
    child = run(
        "import signal, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: print('asked', flush=True))\n"
        "print('up', flush=True)\n"
        "end = time.monotonic() + 1\n"
        "while time.monotonic() < end: time.sleep(0.05)"
    )
    wait_until(lambda: "up" in log_file.read_text())

    child.ask_to_stop()
    wait_until(lambda: "asked" in log_file.read_text())
    child.stop(grace_s=20)

    assert log_file.read_text() == "up\nasked\n"
    assert child.exit_code() == 0


def test_what_a_child_left_behind_is_killed_with_it(run: Run, log_file: Path) -> None:
    child = run(
        "import subprocess, sys\n"
        "print(subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']).pid)"
    )
    assert child.wait(20) == 0
    grandchild_pid = int(log_file.read_text())

    child.kill()

    wait_until(lambda: are_gone([grandchild_pid]))


def test_a_leash_ends_the_whole_tree_of_a_killed_owner(tmp_path: Path) -> None:
    owner_code = """
import subprocess, sys, time
from pathlib import Path
from cli.stack.child_process import ChildCommand, ChildProcess
from cli.stack.leash import Leash

folder = Path(sys.argv[1])
leash = Leash()
leash.start()
grandchild = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"
code = (
    "import subprocess, sys, time\\n"
    f"print(subprocess.Popen([sys.executable, '-c', {grandchild!r}]).pid, flush=True)\\n"
    "time.sleep(600)"
)
child = ChildProcess(
    ChildCommand(
        argv=[sys.executable, "-c", code],
        environment={},
        log_file=folder / "log",
        folder=folder,
        orphan_signal=15,
    ),
    leash,
)
while not (folder / "log").read_text().endswith("\\n"):
    time.sleep(0.02)
print(child.pid, (folder / "log").read_text().strip())
sys.stdin.read()
"""
    with running_python(owner_code, str(tmp_path)) as owner:
        pids = [int(pid) for pid in read_line(owner).split()]
        owner.kill()
        owner.wait()

    assert len(pids) == 2
    wait_until(lambda: are_gone(pids))


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel has no parent-death signal")
def test_a_child_dies_with_its_parent_even_without_a_leash(tmp_path: Path) -> None:
    owner_code = """
import sys
from pathlib import Path
from cli.stack.child_process import ChildCommand, ChildProcess

folder = Path(sys.argv[1])
command = ChildCommand(
    argv=[sys.executable, "-c", "import time; time.sleep(600)"],
    environment={},
    log_file=folder / "log",
    folder=folder,
)
print(ChildProcess(command).pid)
sys.stdin.read()
"""
    with running_python(owner_code, str(tmp_path)) as owner:
        pid = int(read_line(owner))
        owner.kill()
        owner.wait()

    wait_until(lambda: are_gone([pid]))


def test_a_log_is_moved_aside_only_past_its_limit(log_file: Path) -> None:
    log_file.write_text("x" * 10)

    rotate_log(log_file, limit_bytes=10)
    kept = log_file.exists()
    rotate_log(log_file, limit_bytes=9)

    assert kept
    assert not log_file.exists()
    assert log_file.with_name("child.log.1").read_text() == "x" * 10


def test_the_last_lines_of_a_log_are_given(log_file: Path) -> None:
    log_file.write_text("\n".join(map(str, range(5_000))))

    assert last_lines(log_file, count=2) == "4998\n4999"
    assert last_lines(log_file.with_name("none")) == ""


def test_a_program_that_is_not_there_is_an_os_error(tmp_path: Path, log_file: Path) -> None:
    command = ChildCommand(
        argv=[str(tmp_path / "none")], environment={}, log_file=log_file, folder=tmp_path
    )

    with pytest.raises(FileNotFoundError):
        ChildProcess(command)


def test_a_child_is_in_a_group_of_its_own(run: Run) -> None:
    child = run("import time; time.sleep(600)")

    assert os.getpgid(child.pid) == child.pid


def test_a_short_program_gives_its_exit_code_and_output() -> None:
    code = "import os; print(os.environ); raise SystemExit('done')"

    ended = run_to_end([sys.executable, "-c", code], environment={"ONLY": "this"}, timeout_s=20)

    assert ended.returncode == 1
    assert "'ONLY': 'this'" in ended.stdout
    assert ended.stderr == "done\n"


def test_a_short_program_that_does_not_end_is_an_error_of_the_stack() -> None:
    with pytest.raises(ProgramTimeoutError, match=r"did not end within 0\.2 s"):
        run_to_end(
            [sys.executable, "-c", "import time; time.sleep(60)"],
            environment={},
            timeout_s=0.2,
        )


def test_a_short_program_that_is_not_there_is_an_error_of_the_stack(tmp_path: Path) -> None:
    with pytest.raises(ServerStartError, match="psql cannot be run"):
        run_to_end([str(tmp_path / "psql")], environment={}, timeout_s=1)
