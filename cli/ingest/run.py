"""One run: files are found by one thread, and sent by several others."""

import queue
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from cli.ingest.content import Content, ContentError
from cli.ingest.found import Found, Refusal, Source
from cli.ingest.journal import Journal
from cli.ingest.patience import StoppedError
from cli.ingest.turns import Turn, Turns
from cli.ingest.upload import Sent, Uploader

# Members of archives wait in files without a name: few, for the disk's sake.
_WAITING_PER_SENDER: Final = 2
_LOOK_S: Final = 0.2


@dataclass(slots=True)
class Tally:
    """What came of the files so far; ``known`` were done by an earlier run."""

    states: Counter[str] = field(default_factory=Counter)
    known: int = 0

    @property
    def files(self) -> int:
        return sum(self.states.values()) + self.known


_Upload = tuple[Found, bytes, Content, Turn]


class Senders:
    """Threads that send what they are handed; they end with the process, wherever they are."""

    def __init__(
        self,
        uploader: Uploader,
        *,
        count: int,
        stop: threading.Event,
        on_sent: Callable[[Sent], None],
    ) -> None:
        self._uploader = uploader
        self._stop = stop
        self._on_sent = on_sent
        self._turns = Turns(stop)
        self._uploads: queue.Queue[_Upload | None] = queue.Queue(_WAITING_PER_SENDER * count)
        self._failure: BaseException | None = None
        self._threads = [
            threading.Thread(target=self._work, name=f"send-{number}", daemon=True)
            for number in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def hand_over(self, found: Found, key: bytes, content: Content) -> None:
        """Let a thread send a file; waits while too many wait to be sent.

        Raises:
            StoppedError: the run is to end.
        """
        self._put((found, key, content, self._turns.take()))

    def finish(self) -> None:
        """Wait until all is sent.

        Raises:
            Exception: what one of the threads ended with.
        """
        for _ in self._threads:
            if not self._stop.is_set():
                self._put(None)
        for thread in self._threads:
            while thread.is_alive():
                thread.join(_LOOK_S)  # in steps, for Ctrl-C
        self.require_sound()

    def require_sound(self) -> None:
        """Raise what one of the threads ended with, if one did.

        Raises:
            Exception: likewise.
        """
        if self._failure is not None:
            raise self._failure

    def _put(self, upload: _Upload | None) -> None:
        while not self._stop.is_set():
            try:
                self._uploads.put(upload, timeout=_LOOK_S)
            except queue.Full:
                continue
            return
        self.require_sound()
        raise StoppedError

    def _work(self) -> None:
        while not self._stop.is_set():
            try:
                upload = self._uploads.get(timeout=_LOOK_S)
            except queue.Empty:
                continue
            if upload is None:
                return
            try:
                self._on_sent(self._uploader.send(*upload))
            except StoppedError:
                return
            except BaseException as error:  # noqa: BLE001 - the main thread raises it again
                self._failure = self._failure or error
                self._stop.set()
                return


def run(
    source: Source,
    *,
    journal: Journal,
    uploader: Uploader,
    senders: int,
    stop: threading.Event,
    report: Callable[[Sent | None, Tally], None],
) -> Tally:
    """Account for every file of a source.

    Args:
        source: where the files come from.
        journal: knows what earlier runs have done.
        uploader: sends a file.
        senders: how many files are sent at once.
        stop: set by whoever wants the run to end, and by what fails.
        report: told of every file; None for one that an earlier run has done.

    Raises:
        StoppedError: the run was to end.
        CommandError: the source, the journal or the API cannot be used.
    """
    tally = Tally()
    lock = threading.Lock()

    def account(sent: Sent | None) -> None:
        with lock:
            if sent is None:
                tally.known += 1
            else:
                tally.states[sent.state] += 1
            report(sent, tally)

    pool = Senders(uploader, count=senders, stop=stop, on_sent=account)
    try:
        for found in source.scan():
            if stop.is_set():
                break
            key = journal.begin(found)
            if key is None:
                account(None)
            elif found.refusal is not None:
                account(uploader.refuse(found, key, found.refusal))
            else:
                _hand_over(found, key, pool, uploader, account)
        pool.finish()
    except BaseException:
        stop.set()
        raise
    if stop.is_set():
        raise StoppedError
    journal.forget_absent()
    return tally


def _hand_over(
    found: Found,
    key: bytes,
    pool: Senders,
    uploader: Uploader,
    account: Callable[[Sent | None], None],
) -> None:
    try:
        content = found.fetch()
    except ContentError as error:
        account(uploader.refuse(found, key, Refusal(error.code, error.message)))
        return
    pool.hand_over(found, key, content)
