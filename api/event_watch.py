"""Who waits for something to happen to a document: one question to the database for all of them.

So somebody who waits costs memory and nothing else, however long that takes: no thread, and no
connection.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from uuid import UUID

import anyio
import structlog

from db import events
from db.engine import Transaction
from db.errors import DatabaseUnavailableError
from db.events import Event

POLL_S = 0.25
BATCH = 100
"""Most events of a document that are fetched at once, and kept for a reader that is slow."""

log = structlog.get_logger(__name__)

Look = Callable[[Mapping[UUID, int]], Mapping[UUID, Sequence[Event]]]


class Watcher:
    """Somebody who has seen the events of a document up to a number."""

    def __init__(self, document_id: UUID, number: int) -> None:
        self.document_id = document_id
        self.number = number
        self._found: list[Event] = []
        self._wake = anyio.Event()
        self._is_ended = False

    @property
    def has_read(self) -> bool:
        return not self._found

    async def next(self) -> Sequence[Event]:
        """Return what happened since, as soon as something has; nothing: the process ends."""
        if not self._is_ended:
            await self._wake.wait()
        found, self._found, self._wake = self._found, [], anyio.Event()
        return found

    def tell(self, found: Sequence[Event]) -> None:
        self._found = [event for event in found if event.number > self.number]
        if self._found:
            self.number = self._found[-1].number
            self._wake.set()

    def end(self) -> None:
        self._is_ended = True
        self._wake.set()


class EventWatch:
    """Asks every ``POLL_S`` seconds what happened, as long as somebody waits.

    Used in the event loop alone; ``look`` runs in a thread.
    """

    def __init__(self, look: Look) -> None:
        self._look = look
        self._watchers: set[Watcher] = set()
        self._somebody: anyio.Event | None = None
        self._is_ending = False

    @contextmanager
    def watching(self, document_id: UUID, *, after: int) -> Iterator[Watcher]:
        """Lend a watcher that is told what follows an event's number."""
        watcher = Watcher(document_id, after)
        self._watchers.add(watcher)
        if self._somebody is not None:
            self._somebody.set()
        if self._is_ending:
            watcher.end()
        try:
            yield watcher
        finally:
            self._watchers.discard(watcher)

    def end(self) -> None:
        """Let everybody who waits go: the process is about to end."""
        self._is_ending = True
        for watcher in self._watchers:
            watcher.end()

    async def run(self) -> None:
        """Tell the watchers, until cancelled."""
        while True:
            self._somebody = anyio.Event()
            if not self._watchers:
                await self._somebody.wait()
            try:
                await self._tell()
            except DatabaseUnavailableError:
                log.warning("events not looked for, the database is not reachable")
            except Exception:
                # Of a loop that ended nobody would hear, and everybody would wait for ever.
                log.exception("events not looked for")
            await anyio.sleep(POLL_S)

    async def _tell(self) -> None:
        waiting = [watcher for watcher in self._watchers if watcher.has_read]
        wanted: dict[UUID, int] = {}
        for watcher in waiting:
            known = wanted.get(watcher.document_id, watcher.number)
            wanted[watcher.document_id] = min(known, watcher.number)
        if not wanted:
            return
        found = await anyio.to_thread.run_sync(self._look, wanted)
        for watcher in waiting:
            watcher.tell(found.get(watcher.document_id, ()))


def look_in(transaction: Transaction) -> Look:
    """Return what asks a database for events."""

    def look(after: Mapping[UUID, int]) -> Mapping[UUID, Sequence[Event]]:
        with transaction() as session:
            return events.list_of_many(session, after, limit=BATCH)

    return look
