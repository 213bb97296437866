"""What the three embedded servers have in common."""

import os
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from cli.stack.child_process import ChildCommand, ChildProcess, cut_log, last_lines, rotate_log
from cli.stack.errors import ServerStartError, raise_if_set
from cli.stack.folder_lock import FolderLock
from cli.stack.leash import Leash
from cli.stack.ports import LOOPBACK, free_ports, is_free
from cli.stack.remembered import Remembered, make_private_folder

# Between choosing a free port and the server's listening on it somebody else can take it.
_ATTEMPTS = 5
_POLL_S = 0.02


class ChildServer(ABC):
    """A server from a wheel, run as a child on the loopback address.

    Its folder holds its data, its password and its log, and is locked while it runs.
    ``start`` from the main thread, or from one that outlives the server: the kernel kills the
    server when the *thread* that started it ends.

    Attributes:
        name: what logs and messages call it.
        log_file: where its output goes.
        ports: where it listens, once started; the first is the one that clients use.
    """

    name: ClassVar[str]
    port_count: ClassVar[int] = 1
    holds_other_users_folder: ClassVar[bool] = False
    stop_signal: ClassVar[int] = signal.SIGTERM
    orphan_signal: ClassVar[int] = signal.SIGKILL

    def __init__(
        self, folder: Path, *, log_file: Path | None = None, leash: Leash | None = None
    ) -> None:
        self.log_file = log_file or folder / f"{self.name}.log"
        self.ports: tuple[int, ...] = ()
        self._folder = folder
        self._leash = leash
        self._lock = FolderLock(folder)
        self._remembered: Remembered | None = None
        self._process: ChildProcess | None = None
        self._moves_left = 0

    @property
    def port(self) -> int:
        return self.ports[0]

    @property
    def address(self) -> str:
        """Where clients connect, as ``host:port``."""
        return f"{LOOPBACK}:{self.port}"

    @property
    def password(self) -> str:
        if self._remembered is None:
            raise RuntimeError(f"{self.name} is not started")
        return self._remembered.password

    @property
    def pid(self) -> int | None:
        """The server's process; None when it was not started or is stopped."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Lock the folder, make what is missing in it, and run the server.

        Raises:
            FolderLockedError: another stack uses the folder.
            WheelMissingError: the server is not installed.
            ServerStartError: its data folder could not be made, or it cannot be run.
        """
        try:
            self._start()
        except OSError as error:
            raise ServerStartError(f"{self.name} cannot be started: {error}") from error

    def _start(self) -> None:
        # Documents of all users lie in it, and every user of the machine can look for it.
        make_private_folder(self._folder, is_passable=self.holds_other_users_folder)
        self._lock.acquire()
        try:
            rotate_log(self.log_file)
            self._remembered = Remembered.load(self._folder)
            # Saved before it is used: data made with a password that is lost are lost too.
            self._remembered.save(self._folder)
            self._prepare()
            self._choose_address(preferred=self._remembered.ports)
            self._moves_left = _ATTEMPTS - 1
            self._spawn()
        except BaseException:
            self.stop()
            raise

    def wait_ready(self, timeout_s: float = 30.0, stop: threading.Event | None = None) -> None:
        """Return once the server answers; start it again when its port was taken meanwhile.

        Raises:
            ServerStartError: it ended, or did not answer in time.
            StackStoppedError: ``stop`` was set.
        """
        deadline_s = time.monotonic() + timeout_s
        while not self.is_ready():
            self._running().wait(_POLL_S)
            raise_if_set(stop)
            if time.monotonic() > deadline_s:
                raise self.not_ready(timeout_s)

    def is_ready(self) -> bool:
        """Ask it, briefly, whether it answers; start it again when its port was taken meanwhile.

        Raises:
            ServerStartError: it has ended, for another reason or again and again.
        """
        if self._is_ready():
            self._finish()
            return True
        exit_code = self._running().exit_code()
        if exit_code is None:
            return False
        self._running().kill()
        if self._moves_left == 0 or all(map(is_free, self.ports)):
            raise ServerStartError(
                f"{self.name} ended with {exit_code}:\n{last_lines(self.log_file)}"
            )
        self._moves_left -= 1
        self._choose_address(preferred=())
        self._spawn()
        return False

    def not_ready(self, timeout_s: float) -> ServerStartError:
        """Return the error that says what it was waited for in vain."""
        return ServerStartError(
            f"{self.name} did not answer on {self.address} within {timeout_s:g} s:\n"
            f"{last_lines(self.log_file)}"
        )

    def exit_code(self) -> int | None:
        """Return how the server ended; None while it runs."""
        return self._running().exit_code()

    def limit_log(self) -> None:
        """Keep the log at a size that a disk bears, however long the server runs."""
        cut_log(self.log_file)

    def kill(self) -> None:
        """End the server as a crash would; ``restart`` brings it back."""
        self._running().kill()

    def restart(self, timeout_s: float = 30.0) -> None:
        """Run a server that died again, at the same address.

        Raises:
            ServerStartError: it does not come back, or another process has taken a port of it;
                what uses the server knows no other address, so it has to be tried again.
        """
        self._running().kill()
        if tuple(self._choose_ports(self.ports)) != self.ports:
            raise ServerStartError(f"another process listens on a port of {self.name}")
        self._spawn()
        self._moves_left = 0
        self.wait_ready(timeout_s)

    def ask_to_stop(self) -> None:
        """Ask it to end, without waiting."""
        if self._process is not None:
            self._process.ask_to_stop(self.stop_signal)

    def stop(self, grace_s: float = 10.0) -> None:
        """End the server, in order when it can within ``grace_s``, and give its folder free."""
        if self._process is not None:
            self._process.stop(signal_number=self.stop_signal, grace_s=grace_s)
            self._process = None
        self._lock.release()

    @abstractmethod
    def _prepare(self) -> None:
        """Make what the server needs before its first start; later starts find it."""

    @abstractmethod
    def _argv(self) -> Sequence[str]:
        """Return the command line for ``self.ports``."""

    @abstractmethod
    def _is_ready(self) -> bool:
        """Ask the server, briefly, whether it answers; never raises for one that does not."""

    def _finish(self) -> None:  # noqa: B027 - most servers need nothing
        """Do what needs a server that answers; done at every start."""

    def _choose_ports(self, preferred: Sequence[int]) -> Sequence[int]:
        return free_ports(self.port_count, preferred=preferred)

    def _inherited(self) -> Sequence[int]:
        return [self._lock.descriptor]

    def _user_id(self) -> int | None:
        return None

    def _environment(self) -> dict[str, str]:
        # Nothing of ours: weed would make an account of AWS_ACCESS_KEY_ID, libpq reads PG*.
        return {"PATH": os.defpath, "HOME": str(self._folder), "LC_ALL": "C.UTF-8"}

    def _running(self) -> ChildProcess:
        if self._process is None:
            raise RuntimeError(f"{self.name} is not started")
        return self._process

    def _choose_address(self, *, preferred: Sequence[int]) -> None:
        self.ports = tuple(self._choose_ports(preferred))
        self._remembered = Remembered(password=self.password, ports=self.ports)
        self._remembered.save(self._folder)

    def _spawn(self) -> None:
        command = ChildCommand(
            argv=self._argv(),
            environment=self._environment(),
            log_file=self.log_file,
            folder=Path("/"),
            user_id=self._user_id(),
            orphan_signal=self.orphan_signal,
            inherited=self._inherited(),
            umask=0o077,
        )
        try:
            self._process = ChildProcess(command, self._leash)
        except OSError as error:
            raise ServerStartError(f"{self.name} cannot be run: {error}") from error
