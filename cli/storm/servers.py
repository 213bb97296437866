"""The servers of a storm, which it may kill, and what a fleet needs to know of them."""

import os
import signal
import threading
import time
from pathlib import Path
from typing import Final, Self

from bench.faults.s3_proxy import S3Proxy
from cli.stack.errors import ServerStartError
from cli.stack.leash import Leash
from cli.stack.ports import LOOPBACK, free_ports
from cli.stack.postgres import Postgres
from cli.stack.seaweedfs import SeaweedFS
from cli.stack.servers import ChildServer
from cli.stack.valkey import Valkey
from db import api_keys
from db.engine import Database
from db.migrate import migrate
from storage.s3 import S3ObjectStore

# How Postgres is ended.
IN_ORDER: Final = signal.SIGINT
AT_ONCE: Final = signal.SIGQUIT
LIKE_A_LOST_MACHINE: Final = signal.SIGKILL

TENANT: Final = "storm"
_BUCKET: Final = "storm"
_READY_TIMEOUT_S: Final = 60.0
_STOP_TIMEOUT_S: Final = 30.0
_RESTART_TIMEOUT_S: Final = 120.0
_PAUSE_S: Final = 0.2


class StormServers:
    """Valkey, Postgres and SeaweedFS in a folder; start and restart them from the main thread.

    Args:
        home: for their data.
        logs: for their logs.
        seed: of what the proxy before the storage does.

    Attributes:
        database: of the storm's own connections.
        api_key: for clients.
        proxy: between fleet and storage.
    """

    def __init__(self, home: Path, *, logs: Path, seed: int) -> None:
        self.leash = Leash()
        folder = home / "servers"
        folder.mkdir(mode=0o711)
        self.valkey = Valkey(folder / "valkey", log_file=logs / "valkey.log", leash=self.leash)
        self.postgres = Postgres(
            folder / "postgres", log_file=logs / "postgres.log", leash=self.leash
        )
        self.storage = SeaweedFS(
            folder / "seaweedfs", log_file=logs / "seaweedfs.log", leash=self.leash
        )
        self._seed = seed
        self._api_port = free_ports(1)[0]

    def __enter__(self) -> Self:
        self.leash.start()
        try:
            for server in self.all():
                server.start()
            for server in self.all():
                server.wait_ready(_READY_TIMEOUT_S)
            self.proxy = S3Proxy(self.storage.port, seed=self._seed)
            self.proxy.start()
            self._prepare()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.proxy.stop()
        self.database.dispose()
        self._stop()

    def all(self) -> tuple[ChildServer, ...]:
        return (self.valkey, self.postgres, self.storage)

    @property
    def api_url(self) -> str:
        return f"http://{LOOPBACK}:{self._api_port}"

    def environment(self) -> dict[str, str]:
        """Return the settings that name these servers, the storage behind its proxy."""
        return {
            "PAGEFLEET_DATABASE_URL": self.postgres.url(),
            "PAGEFLEET_REDIS_URL": self.valkey.url(),
            "PAGEFLEET_S3_ENDPOINT_URL": self.proxy.endpoint_url,
            "PAGEFLEET_S3_BUCKET": _BUCKET,
            "PAGEFLEET_S3_REGION": self.storage.region,
            "PAGEFLEET_S3_ACCESS_KEY_ID": self.storage.access_key_id,
            "PAGEFLEET_S3_SECRET_ACCESS_KEY": self.storage.secret_access_key,
            "PAGEFLEET_API_HOST": LOOPBACK,
            "PAGEFLEET_API_PORT": str(self._api_port),
        }

    def object_count(self) -> int:
        """Return the number of objects of all documents."""
        store = self._store()
        try:
            return sum(1 for _ in store.list("documents/"))
        finally:
            store.close()

    def stop_postgres(self, signal_number: int) -> None:
        """End Postgres in one of the ways that are named above, and wait until it has ended."""
        pid = self.postgres.pid
        if pid is None:
            return
        os.kill(pid, signal_number)
        _wait_ended(self.postgres)

    def restart(self, server: ChildServer) -> None:
        """Run a server that ended again, at the same address, and wait until it answers.

        What is left of a killed Postgres holds its shared memory until it notices, and the new one
        does not start as long.

        Raises:
            ServerStartError: it does not come back.
        """
        deadline_s = time.monotonic() + _RESTART_TIMEOUT_S
        while True:
            try:
                server.restart()
            except ServerStartError:
                if time.monotonic() > deadline_s:
                    raise
                threading.Event().wait(_PAUSE_S)
            else:
                return

    def _prepare(self) -> None:
        store = self._store()
        try:
            store.ensure_bucket()
        finally:
            store.close()
        migrate(self.postgres.url())
        self.database = Database(self.postgres.url())
        with self.database.transaction() as session:
            self.api_key = api_keys.create(session, tenant=TENANT, name="storm")

    def _store(self) -> S3ObjectStore:
        return S3ObjectStore(
            bucket=_BUCKET,
            endpoint_url=self.storage.endpoint_url,
            region=self.storage.region,
            access_key_id=self.storage.access_key_id,
            secret_access_key=self.storage.secret_access_key,
        )

    def _stop(self) -> None:
        for server in reversed(self.all()):
            server.stop()
        self.postgres.remove_data()
        self.leash.stop()


def _wait_ended(server: ChildServer) -> None:
    deadline_s = time.monotonic() + _STOP_TIMEOUT_S
    while server.exit_code() is None:
        if time.monotonic() > deadline_s:
            server.kill()
            return
        threading.Event().wait(_PAUSE_S)
