"""A program of the stack: one of ours, or one that a test brings."""

import http.client
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from cli.stack.child_process import ChildCommand, ChildProcess, cut_log, last_lines, rotate_log
from cli.stack.errors import ServerStartError, raise_if_set
from cli.stack.leash import Leash

_POLL_S = 0.05
_ASK_TIMEOUT_S = 2.0


@dataclass(frozen=True, kw_only=True)
class ProgramSpec:
    """What is run.

    Attributes:
        name: what messages and the log file are called.
        argv: program and arguments.
        environment: the whole environment; nothing is inherited.
        folder: its working folder.
        ready_url: answers 200 once the program serves; None: it is ready as soon as it runs.
        authorization: sent along, so that only this stack's program answers 200 and not one of
            another stack that took the port first.
        grace_s: time to end in order after SIGTERM.
    """

    name: str
    argv: Sequence[str]
    environment: Mapping[str, str]
    folder: Path
    ready_url: str | None = None
    authorization: str | None = None
    grace_s: float = 10.0


class Program:
    """A program that runs, with all that it starts; logged to ``<logs>/<name>.log``."""

    def __init__(self, spec: ProgramSpec, *, logs_folder: Path, leash: Leash) -> None:
        self.name = spec.name
        self.log_file = logs_folder / f"{spec.name}.log"
        self._spec = spec
        self._leash = leash
        self._process: ChildProcess | None = None

    @property
    def pid(self) -> int | None:
        """The program's process; None when it was not started or is stopped."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Run it.

        Raises:
            ServerStartError: there is no such program, or no room for its log.
        """
        command = ChildCommand(
            argv=self._spec.argv,
            environment=self._spec.environment,
            log_file=self.log_file,
            folder=self._spec.folder,
        )
        try:
            rotate_log(self.log_file)
            self._process = ChildProcess(command, self._leash)
        except OSError as error:
            raise ServerStartError(f"{self.name} cannot be run: {error}") from error

    def wait_ready(self, timeout_s: float, stop: threading.Event | None = None) -> None:
        """Return once it serves.

        Raises:
            ServerStartError: it ended, or did not serve in time.
            StackStoppedError: ``stop`` was set.
        """
        deadline_s = time.monotonic() + timeout_s
        while not self.is_ready():
            self._running().wait(_POLL_S)
            raise_if_set(stop)
            if time.monotonic() > deadline_s:
                raise self.not_ready(timeout_s)

    def is_ready(self) -> bool:
        """Ask it, briefly, whether it serves.

        Raises:
            ServerStartError: it has ended.
        """
        url = self._spec.ready_url
        if url is None or _answers(url, self._spec.authorization):
            return True
        exit_code = self._running().exit_code()
        if exit_code is not None:
            raise self._ended(exit_code)
        return False

    def not_ready(self, timeout_s: float) -> ServerStartError:
        """Return the error that says what it was waited for in vain."""
        return ServerStartError(
            f"{self.name} did not answer at {self._spec.ready_url} within "
            f"{timeout_s:g} s:\n{last_lines(self.log_file)}"
        )

    def wait_end(self, stop: threading.Event) -> None:
        """Return once it has ended well.

        Raises:
            ServerStartError: it failed.
            StackStoppedError: ``stop`` was set.
        """
        while (exit_code := self._running().wait(_POLL_S)) is None:
            raise_if_set(stop)
        self._running().kill()
        if exit_code != 0:
            raise self._ended(exit_code)
        self._process = None

    def exit_code(self) -> int | None:
        """Return how it ended; None while it runs."""
        return self._running().exit_code()

    def limit_log(self) -> None:
        """Keep the log at a size that a disk bears, however long it runs."""
        cut_log(self.log_file)

    def restart(self) -> None:
        """Run a program that died again, after killing what it left behind.

        Raises:
            ServerStartError: there is no such program any more.
        """
        self._running().kill()
        self.start()

    def ask_to_stop(self) -> None:
        """Send SIGTERM and do not wait."""
        if self._process is not None:
            self._process.ask_to_stop()

    def stop(self) -> None:
        """End it, in order when it can within its grace."""
        if self._process is not None:
            self._process.stop(grace_s=self._spec.grace_s)
            self._process = None

    def _running(self) -> ChildProcess:
        if self._process is None:
            raise RuntimeError(f"{self.name} is not started")
        return self._process

    def _ended(self, exit_code: int) -> ServerStartError:
        return ServerStartError(f"{self.name} ended with {exit_code}:\n{last_lines(self.log_file)}")


def _answers(url: str, authorization: str | None) -> bool:
    parts = urlsplit(url)
    headers = {} if authorization is None else {"Authorization": authorization}
    connection = http.client.HTTPConnection(parts.netloc, timeout=_ASK_TIMEOUT_S)
    try:
        connection.request("GET", f"{parts.path or '/'}?{parts.query}", headers=headers)
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
