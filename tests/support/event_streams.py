"""Read Server-Sent Events as a client does."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import httpx


@dataclass(frozen=True)
class SentEvent:
    """One event as it came over the wire."""

    number: int
    type: str
    data: dict[str, Any]


@contextmanager
def open_stream(
    client: httpx.Client, document_id: UUID, *, after: int | None = None
) -> Iterator[tuple[httpx.Response, Iterator[SentEvent]]]:
    """Open the stream of a document; yields the answer, and its events as they come."""
    headers = {} if after is None else {"Last-Event-ID": str(after)}
    address = f"/v1/documents/{document_id}/events"
    with client.stream("GET", address, headers=headers) as response:
        yield response, _events(response)


def read_stream(
    client: httpx.Client, document_id: UUID, *, after: int | None = None
) -> list[SentEvent]:
    """Return all events of a stream that ends."""
    with open_stream(client, document_id, after=after) as (response, found):
        assert response.status_code == httpx.codes.OK
        return list(found)


def _events(response: httpx.Response) -> Iterator[SentEvent]:
    fields: dict[str, str] = {}
    for line in response.iter_lines():
        name, _, value = line.partition(": ")
        if line:
            fields[name] = value
        elif "id" in fields:
            yield SentEvent(int(fields["id"]), fields["event"], json.loads(fields["data"]))
            fields = {}
