"""``pagefleet up`` and ``pagefleet down``: the embedded stack."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated

import typer

from cli.console import notices, output
from cli.errors import EXIT_FAILED, CommandError
from cli.settings import own_environment
from cli.stack.child_process import rotate_log
from cli.stack.errors import FolderLockedError, StackError, StackStoppedError
from cli.stack.stack import project_plan, run_stack
from cli.stack.state import StackState, logs_folder, read_stack, running_pid
from cli.stop_signals import stop_on_signals
from workers.settings import home_dir

_START_TIMEOUT_S = 300.0
_STOP_TIMEOUT_S = 90.0
_POLL_S = 0.1
_LAST_WORDS_BYTES = 16 * 1024


def up(
    *,
    detach: Annotated[
        bool,
        typer.Option("--detach", "-d", help="Return when everything serves; stop it with `down`."),
    ] = False,
) -> None:
    """Run everything on this machine: servers, API, workers and Flower.

    Data lie in PAGEFLEET_HOME and survive a restart. Ctrl-C stops everything.
    """
    from cli.required_models import require_models

    home = home_dir()
    if detach:
        with stack_errors():
            try:
                state = start_detached(home, report=_say)
            except StackStoppedError as error:
                _say("Stopped before it served; `pagefleet up --detach` starts it again.")
                raise typer.Exit(EXIT_FAILED) from error
        _show(state, home)
        _say_what_next()
        return
    with stack_errors(), stop_on_signals() as stop:
        run_stack(
            home,
            lambda state: project_plan(state, home=home, inherited=own_environment()),
            report=_say,
            stop=stop,
            ready=lambda state: _show_in_foreground(state, home),
            check=require_models,
            events_token=own_environment().get("PAGEFLEET_S3_EVENTS_TOKEN"),
        )


def down() -> None:
    """Stop the stack that `up` started; its data stay."""
    if stop_stack(home_dir()):
        notices().print("Stopped.")
    else:
        notices().print("No stack runs.")


def start_detached(home: Path, *, report: Callable[[str], None]) -> StackState:
    """Start the stack in the background and return once everything serves.

    Whatever ends this before, Ctrl-C too, ends the stack.

    Args:
        home: its folder.
        report: takes each line that the stack writes while it starts, the reason too when it fails.

    Raises:
        CommandError: a stack of this home runs, or this one does not start.
        StackStoppedError: `pagefleet down` or a signal ended it before it served.
        OSError: it could not even say why it does not: its log cannot be written.
    """
    running = running_pid(home)
    if running is not None:
        raise _already_running(FolderLockedError(home, running))
    log_file = logs_folder(home) / "up.log"
    rotate_log(log_file)
    _require_room(log_file)
    lines = _NewLines(log_file)
    with log_file.open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "cli", "up"],
            cwd=Path(__file__).absolute().parent.parent.parent,
            env={**own_environment(), "PAGEFLEET_HOME": str(home)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # the addresses, which are this command's to show
            stderr=log,
            start_new_session=True,  # it outlives this command and its terminal
        )
    try:
        return _wait_serving(process, home, log_file, report=lambda: lines.report_to(report))
    except BaseException:
        process.terminate()
        raise


def _wait_serving(
    process: "subprocess.Popen[bytes]", home: Path, log_file: Path, *, report: Callable[[], None]
) -> StackState:
    deadline_s = time.monotonic() + _START_TIMEOUT_S
    while time.monotonic() < deadline_s:
        state = read_stack(home)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_POLL_S)
        report()
        if process.returncode == 0:  # as it ends when it is told to
            raise StackStoppedError("stopped while starting")
        if process.returncode is not None:
            _require_room(log_file)
            raise CommandError(
                f"the stack ended with {process.returncode} before it served",
                f"Why is said above, and in {log_file}; `pagefleet doctor` looks for the usual"
                " causes.",
            )
        if state is not None and state.pid == process.pid:
            return state
    raise CommandError(
        f"the stack does not serve after {_START_TIMEOUT_S:g} s, and was stopped",
        f"What it waited for is in {log_file.parent}; `pagefleet doctor` looks for the usual"
        " causes.",
    )


class _NewLines:
    """The whole lines that a log gains from now on."""

    def __init__(self, log_file: Path) -> None:
        self._log_file = log_file
        self._place_bytes = log_file.stat().st_size

    def report_to(self, report: Callable[[str], None]) -> None:
        """Hand over the lines since last time."""
        with self._log_file.open("rb") as log:
            log.seek(self._place_bytes)
            whole, end, _ = log.read().rpartition(b"\n")
        self._place_bytes += len(whole) + len(end)
        for line in whole.decode("utf-8", "replace").splitlines():
            report(line)


def _say(line: str) -> None:
    notices().print(line, markup=False)


def _require_room(log_file: Path) -> None:
    """Raise ``OSError`` where a log has no room for the lines that say why a stack ended."""
    with log_file.open("ab", buffering=0) as log:
        size_bytes = log.tell()
        missing_bytes = _LAST_WORDS_BYTES
        try:
            while missing_bytes:
                missing_bytes -= log.write(bytes(missing_bytes))
        finally:
            with suppress(OSError):
                log.truncate(size_bytes)


def stop_stack(home: Path) -> bool:
    """Stop the stack of a home and wait until it is gone; False when none runs.

    Raises:
        CommandError: it belongs to another user, or does not end.
    """
    pid = running_pid(home)
    if pid is None:
        return False
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return False
    except PermissionError as error:
        raise CommandError(
            f"the stack, process {pid}, belongs to another user",
            "Stop it as that user or as root, or name your own with PAGEFLEET_HOME.",
        ) from error
    deadline_s = time.monotonic() + _STOP_TIMEOUT_S
    while running_pid(home) == pid:
        if time.monotonic() > deadline_s:
            raise CommandError(
                f"process {pid} did not end within {_STOP_TIMEOUT_S:g} s",
                f"`kill -9 {pid}` ends it and all it started; no data are lost by that.",
            )
        threading.Event().wait(_POLL_S)
    return True


@contextmanager
def stack_errors() -> Iterator[None]:
    """Translate what keeps a stack from starting or running.

    Raises:
        CommandError: with the remedy.
    """
    try:
        yield
    except FolderLockedError as error:
        raise _already_running(error) from error
    except StackError as error:
        raise CommandError(str(error), "`pagefleet doctor` looks for the usual causes.") from error
    except OSError as error:
        raise CommandError(
            f"the stack cannot work in its folder: {error}",
            "Free some space or choose another folder with PAGEFLEET_HOME.",
        ) from error


def _already_running(error: FolderLockedError) -> CommandError:
    return CommandError(
        f"the stack of this home runs already, as process {error.owner_pid}",
        "Use it, stop it with `pagefleet down`, or give this one another PAGEFLEET_HOME.",
    )


def _show(state: StackState, home: Path) -> None:
    console = output()
    # With the key on a terminal alone: a log must not have it.
    viewer = (
        state.viewer_url
        if console.is_terminal
        else f"{state.api_url}/ (asks for the key: api_key in stack.json)"
    )
    console.print(
        f"Viewer   {viewer}\n"
        f"API      {state.api_url}\n"
        f"Flower   {state.flower_url} (user {state.flower_user}; password in stack.json)\n"
        f"Logs     {logs_folder(home)}\n"
        f"Details  {home / 'stack.json'}, with the API key",
        markup=False,
    )


def _show_in_foreground(state: StackState, home: Path) -> None:
    _show(state, home)
    output().print("Ctrl-C stops everything; the data stay.")


def _say_what_next() -> None:
    output().print(
        "\nIt runs in the background. What comes next:\n"
        "  pagefleet ingest FOLDER --batch NAME --wait   reads a folder\n"
        "  pagefleet status                              shows the newest documents\n"
        "  pagefleet down                                stops everything; the data stay",
        markup=False,
    )
