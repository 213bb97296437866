"""One child process: in its own group, logged to a file, and gone when its parent is."""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cli.stack.errors import ProgramTimeoutError, ServerStartError
from cli.stack.leash import Leash

LOG_LIMIT_BYTES = 20 * 2**20
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


@dataclass(frozen=True, kw_only=True)
class ChildCommand:
    """How a child is run.

    Attributes:
        argv: program and arguments.
        environment: the whole environment; nothing is inherited.
        log_file: where its output is appended.
        folder: its working folder.
        user_id: the user and group to become; None stays who we are.
        orphan_signal: what it is sent when its parent dies.
        inherited: descriptors it keeps open, besides its output.
        umask: permissions that the files it makes do not get; -1 for ours.
    """

    argv: Sequence[str]
    environment: Mapping[str, str]
    log_file: Path
    folder: Path
    user_id: int | None = None
    orphan_signal: int = signal.SIGKILL
    inherited: Sequence[int] = ()
    umask: int = -1


class ChildProcess:
    """A running child and everything it starts, as long as that stays in its process group.

    The kernel ties the parent-death signal to the *thread* that started the child: make one
    from the main thread, or from a thread that lives as long as the child shall.

    Raises:
        OSError: the program cannot be run.
    """

    def __init__(self, command: ChildCommand, leash: Leash | None = None) -> None:
        self._leash = leash
        self._is_asked_to_stop = False
        with command.log_file.open("ab") as log_file:
            self._process = subprocess.Popen(  # noqa: S603 - no shell, and our own arguments
                command.argv,
                env=command.environment,
                cwd=command.folder,
                stdin=subprocess.DEVNULL,
                stdout=log_file,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C goes to us; we stop children in order
                pass_fds=command.inherited,
                umask=command.umask,
                user=command.user_id,
                group=command.user_id,
                extra_groups=None if command.user_id is None else [],
                # Runs after the change of user, which would clear the signal again.
                preexec_fn=_die_with_parent(command.orphan_signal),  # noqa: PLW1509 - see there
            )
        if leash is not None:
            leash.hold(self.pid, command.orphan_signal)

    @property
    def pid(self) -> int:
        return self._process.pid

    def exit_code(self) -> int | None:
        """Return how it ended, negative for a signal; None while it runs."""
        return self._process.poll()

    def wait(self, timeout_s: float) -> int | None:
        """Return how it ended, or None when it still runs after ``timeout_s`` seconds."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def ask_to_stop(self, signal_number: int = signal.SIGTERM) -> None:
        """Signal the child alone, once: it ends its own children in order, or not at all.

        A second signal would tell a worker not to wait for its tasks any longer.
        """
        if not self._is_asked_to_stop:
            self._is_asked_to_stop = True
            self._process.send_signal(signal_number)

    def stop(self, *, signal_number: int = signal.SIGTERM, grace_s: float) -> None:
        """Ask it to stop, wait, and kill what is left of its group."""
        self.ask_to_stop(signal_number)
        self.wait(grace_s)
        self.kill()

    def kill(self) -> None:
        """Kill the whole group and reap the child."""
        # All gone; macOS says the latter of a group of zombies.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        if self._leash is not None:
            self._leash.release(self.pid)


def run_to_end(
    argv: Sequence[str],
    *,
    environment: Mapping[str, str],
    timeout_s: float,
    folder: Path = Path("/"),
    user_id: int | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a short program and return its exit code and output.

    Args:
        argv: program and arguments.
        environment: the whole environment; nothing is inherited.
        timeout_s: after which it is killed.
        folder: its working folder.
        user_id: the user and group to become; None stays who we are.

    Raises:
        ProgramTimeoutError: it did not end in time.
        ServerStartError: it cannot be run.
    """
    name = Path(argv[0]).name
    try:
        return subprocess.run(  # noqa: S603 - no shell, and our own arguments
            argv,
            env=environment,
            cwd=folder,
            user=user_id,
            group=user_id,
            extra_groups=None if user_id is None else [],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
            timeout=timeout_s,
        )
    except subprocess.TimeoutExpired as error:
        raise ProgramTimeoutError(f"{name} did not end within {timeout_s:g} s") from error
    except OSError as error:
        raise ServerStartError(f"{name} cannot be run: {error}") from error


def rotate_log(log_file: Path, *, limit_bytes: int = LOG_LIMIT_BYTES) -> None:
    """Move a log that has grown past the limit aside, over the one moved before."""
    log_file.parent.mkdir(parents=True, exist_ok=True)
    if log_file.exists() and log_file.stat().st_size > limit_bytes:
        log_file.replace(_older(log_file))


def cut_log(log_file: Path, *, limit_bytes: int = LOG_LIMIT_BYTES) -> None:
    """Empty a log that has grown past the limit while its program writes it; keep one copy.

    What is written between copy and cut is lost. The program goes on at the start of the file, as
    it has it open for appending.
    """
    try:
        if log_file.stat().st_size <= limit_bytes:
            return
        # A full disk keeps no copy, and needs the cut all the more.
        with suppress(OSError):
            shutil.copyfile(log_file, _older(log_file))
        os.truncate(log_file, 0)
    except OSError:
        return  # a log that was removed, or is nobody's to cut, is no reason to stop a stack


def last_lines(log_file: Path, *, count: int = 15) -> str:
    """Return the end of a log, for an error message."""
    if not log_file.exists():
        return ""
    with log_file.open("rb") as log:
        log.seek(max(0, log_file.stat().st_size - 8192))
        return "\n".join(log.read().decode("utf-8", "replace").splitlines()[-count:])


def _older(log_file: Path) -> Path:
    return log_file.with_name(log_file.name + ".1")


def _die_with_parent(signal_number: int) -> Callable[[], None] | None:
    """Return what the child does between fork and exec; None where the kernel has no such thing.

    It runs in a copy of a process that may have threads, so it takes no lock and imports
    nothing: the C function is looked up here, before the fork.
    """
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl
    parent_pid = os.getpid()

    def arrange() -> None:
        prctl(_PR_SET_PDEATHSIG, signal_number, 0, 0, 0)
        if os.getppid() != parent_pid:  # it died before the signal was arranged
            os._exit(1)

    return arrange
