"""Clients of a storm: they send documents again under the same key until they are accepted."""

import random
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from cli.client import UNREACHABLE, ApiClient
from cli.errors import ApiError
from cli.storm.verdict import Sent

_SERVER_ERROR: Final = 500
_WORTH_ANOTHER_TRY: Final = frozenset({408, 429})
_FIRST_PAUSE_S: Final = 0.2
_LONGEST_PAUSE_S: Final = 5.0
# Every so many documents one is sent once more after it was accepted.
_TWICE_EVERY: Final = 5
_BULK_EVERY: Final = 3
_CLIENTS: Final = 4


class StormClients:
    """Threads that send documents, spread over a time.

    Args:
        api_url: of the API.
        api_key: for it.
        files: path of each sample by its name.
        documents: in the order in which they are sent; each is filled in by one thread.
        over_s: the time over which they are spread.
        all_interactive: False sends every third as bulk.
    """

    def __init__(
        self,
        api_url: str,
        api_key: str,
        *,
        files: Mapping[str, Path],
        documents: Sequence[Sent],
        over_s: float,
        all_interactive: bool,
    ) -> None:
        self._api_url = api_url
        self._api_key = api_key
        self._files = files
        self._documents = documents
        self._over_s = over_s
        self._all_interactive = all_interactive
        self._give_up = threading.Event()
        self._started_s = 0.0
        self._threads = [
            threading.Thread(target=self._send_from, args=(first,), daemon=True)
            for first in range(_CLIENTS)
        ]

    def start(self) -> None:
        self._started_s = time.monotonic()
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Give up what is not accepted yet."""
        self._give_up.set()
        for thread in self._threads:
            thread.join()

    @property
    def is_done(self) -> bool:
        return not any(thread.is_alive() for thread in self._threads)

    def _send_from(self, first: int) -> None:
        with ApiClient(self._api_url, self._api_key) as client:
            for number in range(first, len(self._documents), _CLIENTS):
                due_s = self._started_s + self._over_s * number / len(self._documents)
                if self._give_up.wait(max(0.0, due_s - time.monotonic())):
                    return
                self._send(number, client)
                if number % _TWICE_EVERY == 0:
                    self._send(number, client)

    def _send(self, number: int, client: ApiClient) -> None:
        sent = self._documents[number]
        is_bulk = not self._all_interactive and number % _BULK_EVERY == 0
        pause_s = _FIRST_PAUSE_S
        while not self._give_up.is_set():
            sent.tries += 1
            try:
                answer = client.submit(
                    self._files[sent.sample],
                    idempotency_key=sent.key,
                    priority="bulk" if is_bulk else "interactive",
                )
            except ApiError as error:
                sent.refusal = f"{error.code}: {error.message}"
                if not _is_passing(error):
                    return
            else:
                sent.ids.append(answer.id)
                return
            self._give_up.wait(pause_s * random.uniform(0.5, 1))  # noqa: S311 - so that clients part
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def _is_passing(error: ApiError) -> bool:
    """Tell whether the same request may do better later."""
    return (
        error.code == UNREACHABLE
        or error.status in _WORTH_ANOTHER_TRY
        or (error.status is not None and error.status >= _SERVER_ERROR)
    )
