"""A deployment that replaces every process, one after the other, while a batch is being read."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

import httpx
import pytest

from cli.samples import Sample
from tests.support.fleet import COMMANDS, POLL_S, Fleet

TIMEOUT_S = 400
GRACE_S = 60
BATCH = ["letters.pdf", "scanned-letters.pdf"]
PAUSE_S = 20

pytestmark = pytest.mark.timeout(1_500)


@dataclass
class Sender:
    """Sends the batch again and again; while nobody listens it tries once more.

    Attributes:
        accepted: file name and document of each upload that was answered.
        failures: whatever else came of an upload; there should be none.
    """

    fleet: Fleet
    paths: list[Path]
    accepted: list[tuple[str, UUID]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def send_until(self, stop: threading.Event) -> None:
        while not stop.is_set():
            for path in self.paths:
                self._send(path)
            stop.wait(PAUSE_S)

    def _send(self, path: Path) -> None:
        try:
            self.accepted.append((path.name, self.fleet.submit(path)))
        except httpx.ConnectError:
            threading.Event().wait(POLL_S)
        except (httpx.HTTPError, AssertionError) as error:
            self.failures.append(repr(error))


@contextmanager
def sending(sender: Sender) -> Iterator[None]:
    """Send in the background until the block ends."""
    stop = threading.Event()
    thread = threading.Thread(target=sender.send_until, args=(stop,))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_a_rolling_restart_costs_no_document_and_changes_no_result(
    fleet: Fleet, samples: dict[str, Sample]
) -> None:
    paths = [samples[name].path for name in BATCH]
    undisturbed = fleet.results(fleet.submit_all(paths), timeout_s=TIMEOUT_S)
    sender = Sender(fleet, paths)

    with sending(sender):
        for name, arguments in COMMANDS.items():
            fleet.wait_for_claim()
            fleet.terminate(name, grace_s=GRACE_S)
            fleet.start(name, *arguments)
            fleet.wait_for_api()

    assert sender.failures == []
    assert len(sender.accepted) >= len(COMMANDS)
    for name, document_id in sender.accepted:
        assert fleet.results({name: document_id}, timeout_s=TIMEOUT_S) == {name: undisturbed[name]}
    assert fleet.rows("SELECT state, result_key IS NOT NULL FROM documents") == [
        ("succeeded", True)
    ] * (len(sender.accepted) + len(paths))
