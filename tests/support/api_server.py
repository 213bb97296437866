"""Run the API for tests: in a thread of the test, or as the process that users run."""

import asyncio
import functools
import itertools
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

import httpx
import uvicorn
from fastapi import FastAPI

from api.app import create_app, describe_only
from api.services import OpenDoors
from api.settings import ApiSettings
from cli.client import ApiClient
from db import api_keys
from db.engine import Database
from db.models import Document
from db.states import Priority
from storage.object_store import ObjectStore
from storage.s3 import S3ObjectStore
from tests.support.plain_http import NO_TLS
from tests.support.services import S3Bucket
from workers.request_rates import Taken

_START_LIMIT_S = 90.0
_PAUSE_S = 0.05
_PROMPT_S = 0.01
_ROOT = Path(__file__).parents[2]


@dataclass(slots=True)
class RecordedDispatch:
    """Takes the messages that the API sends."""

    sent: list[UUID] = field(default_factory=list)
    priorities: list[Priority] = field(default_factory=list)

    def __call__(self, document_id: UUID, *, priority: Priority) -> None:
        self.sent.append(document_id)
        self.priorities.append(priority)


@dataclass
class RecordedDrawings:
    """Takes the wishes for page images, as long as there is room."""

    has_room: bool = True
    asked: list[tuple[UUID, int]] = field(default_factory=list)

    def __call__(self, document_id: UUID, page_index: int, *, tenant: str) -> bool:  # noqa: ARG002 - the door's
        if self.has_room:
            self.asked.append((document_id, page_index))
        return self.has_room


@dataclass
class RecordedExports:
    """Is told of exports that wait; by default it has no room, and the sweep finds their rows."""

    has_room: bool = False
    asked: list[UUID] = field(default_factory=list)

    def __call__(self, export_id: UUID, document_id: UUID, *, priority: Priority) -> bool:
        del document_id, priority
        self.asked.append(export_id)
        return self.has_room


def unlimited(key_id: str, max_requests_per_minute: int) -> Taken:  # noqa: ARG001 - the door's
    """Let a key ask as often as it likes."""
    return Taken(is_allowed=True, left=max_requests_per_minute, wait_s=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningApi:
    """The API on real servers, and what a test looks at it with."""

    url: str
    database: Database
    store: S3ObjectStore
    dispatch: RecordedDispatch
    client: httpx.Client


Serve = Callable[..., AbstractContextManager[RunningApi]]


def open_store(bucket: S3Bucket, *, endpoint_url: str | None = None) -> S3ObjectStore:
    return S3ObjectStore(
        bucket=bucket.name,
        endpoint_url=endpoint_url or bucket.endpoint_url,
        region=bucket.region,
        access_key_id=bucket.access_key_id,
        secret_access_key=bucket.secret_access_key,
        attempts=2,
    )


def make_key(database: Database, tenant: str) -> str:
    with database.transaction() as session:
        return api_keys.create(session, tenant=tenant, name="test")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedApi:
    """The API on real servers, as the command line meets it."""

    url: str
    key: str
    client: ApiClient
    database: Database


def documents_in(database: Database) -> list[Document]:
    with database.transaction() as session:
        return session.query(Document).order_by(Document.id).all()


def keys_in(store: ObjectStore) -> list[str]:
    return [found.key for found in store.list("")]


def client_of(url: str, key: str | None) -> httpx.Client:
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    return httpx.Client(base_url=url, headers=headers, timeout=60, trust_env=False, verify=NO_TLS)


def make_app(settings: ApiSettings, *, doors: OpenDoors) -> FastAPI:
    """Make an application that takes its routes from one that may have answered before.

    What FastAPI makes of each route at the first request takes longer than most tests, and is the
    same for all applications.
    """
    app = create_app(settings, doors=doors)
    app.router.routes[:] = _lasting_app().router.routes
    return app


@functools.cache
def _lasting_app() -> FastAPI:
    return describe_only()


class _PromptServer(uvicorn.Server):
    """Looks more often whether it is to end than every tenth of a second, which is the original."""

    async def main_loop(self) -> None:
        for tick in itertools.count():
            if await self.on_tick(tick):
                return
            await asyncio.sleep(_PROMPT_S)


@contextmanager
def served_in_thread(app: FastAPI) -> Iterator[str]:
    """Serve an application on a free port; yields its address."""
    server = _PromptServer(uvicorn.Config(app, log_config=None, access_log=False))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            _wait(lambda: server.started, pause_s=_PROMPT_S)
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def served_in_process(
    *, database_url: str, redis_url: str, bucket: S3Bucket, **settings: str
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Serve the API as users do; yields its address and its process."""
    port = free_port()
    environment = {
        "PATH": os.environ["PATH"],
        "PAGEFLEET_DATABASE_URL": database_url,
        "PAGEFLEET_REDIS_URL": redis_url,
        **bucket.environment(),
        "PAGEFLEET_API_PORT": str(port),
        **settings,
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "api.server"],
        cwd=_ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        url = f"http://127.0.0.1:{port}"
        _wait(lambda: _is_live(url, process))
        yield url, process
    finally:
        process.kill()
        process.communicate()


def free_port() -> int:
    """Return a port on which nobody listens at the moment."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
    return port


def wait_until(condition: Callable[[], bool], *, what: str) -> None:
    """Return when the condition holds.

    Raises:
        TimeoutError: it does not for too long.
    """
    try:
        _wait(condition)
    except TimeoutError as error:
        raise TimeoutError(what) from error


def _is_live(url: str, process: subprocess.Popen[str]) -> bool:
    if process.poll() is not None:
        raise RuntimeError(f"the API ended:\n{process.communicate()[0]}")
    try:
        return httpx.get(f"{url}/livez", trust_env=False, verify=NO_TLS).is_success
    except httpx.TransportError:
        return False


def _wait(condition: Callable[[], bool], *, pause_s: float = _PAUSE_S) -> None:
    deadline = time.monotonic() + _START_LIMIT_S
    pause = threading.Event()
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("waited too long")
        pause.wait(pause_s)
