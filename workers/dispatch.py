"""Messages: hints that say "look at row X". Postgres knows what is to be done; see the sweep.

Tasks are named, not imported, so that whoever sends needs none of what they work with.
``argsrepr`` is what Flower shows: readable, and free of file names.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from uuid import UUID

from celery import chord
from celery.canvas import Signature

from db.states import Priority
from workers import asked_drawings, queue_room
from workers.app import app
from workers.asked_drawings import Asked
from workers.broker import DispatchError, check, faults_translated
from workers.celeryconfig import (
    ASSEMBLE_QUEUE,
    ASSEMBLE_TASK,
    DRAW_TASK,
    EXPORT_QUEUE,
    EXPORT_TASK,
    PRIORITIES,
    RECOGNIZE_TASK,
    SPLIT_QUEUE,
    SPLIT_TASK,
)
from workers.ocr.page_numbers import page_number

__all__ = [
    "ChunkMessage",
    "DispatchError",
    "check",
    "end_drawing",
    "place_for_split",
    "send_assembly",
    "send_assembly_if_place",
    "send_chord",
    "send_chunk",
    "send_drawing",
    "send_export",
    "send_export_if_place",
    "send_split",
]


@dataclass(frozen=True, slots=True)
class ChunkMessage:
    """What a message about a chunk says; the page range is half-open and 0-based."""

    chunk_id: UUID
    document_id: UUID
    page_start: int
    page_stop: int


def answer_within(timeout_s: float) -> None:
    """Give the broker less time in this process; to be said before anything is sent.

    For a process in which somebody waits for each message.
    """

    def shorten(**_: object) -> None:
        app.conf.broker_transport_options = {
            **app.conf.broker_transport_options,
            "socket_timeout": timeout_s,
            "socket_connect_timeout": timeout_s,
        }

    # The configuration is read when it is first needed, and takes what was set before for its own.
    app.on_after_configure.connect(shorten, weak=False)


def send_split(document_id: UUID, *, priority: Priority) -> None:
    """Say that a document of this priority waits to be split.

    Raises:
        DispatchError: the broker does not take it.
    """
    _send(
        _signature(SPLIT_TASK, document_id, argsrepr=f"('doc={document_id}',)", priority=priority)
    )


def send_chunk(chunk: ChunkMessage, *, priority: Priority) -> None:
    """Say that one chunk waits to be recognized, outside of any chord.

    Raises:
        DispatchError: the broker does not take it.
    """
    _send(_chunk_signature(chunk, priority))


def send_assembly(document_id: UUID, generation: int, *, priority: Priority) -> None:
    """Say that a document may be ready to be assembled.

    Raises:
        DispatchError: the broker does not take it.
    """
    _send(_assembly_signature(document_id, generation, priority))


def send_export(export_id: UUID, document_id: UUID, *, priority: Priority) -> None:
    """Say that an export of a document waits to be made.

    Raises:
        DispatchError: the broker does not take it.
    """
    _send(_signature(EXPORT_TASK, export_id, argsrepr=f"('doc={document_id}',)", priority=priority))


def send_export_if_place(
    export_id: UUID, document_id: UUID, *, priority: Priority, limit: int
) -> bool:
    """Say that an export waits, if there is room to say it; return whether it was said.

    Raises:
        DispatchError: the broker does not take it.
    """
    with queue_room.place_for_one(EXPORT_QUEUE, priority=priority, limit=limit) as has_place:
        if has_place:
            send_export(export_id, document_id, priority=priority)
        return has_place


def send_chord(
    document_id: UUID, generation: int, chunks: Sequence[ChunkMessage], *, priority: Priority
) -> None:
    """Send all chunks of a document, and its assembly for when the last one is done.

    The fast path: most documents finish by it. Dying in the middle leaves some chunks unsent
    and a chord that never fires; both are the sweep's to repair.

    Raises:
        DispatchError: the broker does not take it.
    """
    header = [_chunk_signature(chunk, priority) for chunk in chunks]
    _send(chord(header, _assembly_signature(document_id, generation, priority), app=app))


def place_for_split(*, limit: int) -> AbstractContextManager[bool]:
    """Take room for the message about one interactive document, for as long as the block lasts.

    Returns:
        What says on entering whether there is room. Without it the row is left to the sweep.
    """
    return queue_room.place_for_one(SPLIT_QUEUE, priority=Priority.INTERACTIVE, limit=limit)


def send_assembly_if_place(
    document_id: UUID, generation: int, *, priority: Priority, limit: int
) -> None:
    """Say that a document is ready to be assembled, if there is room to say it.

    Raises:
        DispatchError: the broker does not take it.
    """
    with queue_room.place_for_one(ASSEMBLE_QUEUE, priority=priority, limit=limit) as has_place:
        if has_place:
            send_assembly(document_id, generation, priority=priority)


def send_drawing(document_id: UUID, page_index: int, *, tenant: str, limit: int) -> bool:
    """Ask for the image of a page, unless somebody did so and it is not drawn yet.

    It takes its turn with bulk documents: nothing limits how many images somebody looks at, as
    quotas limit his documents, so they overtake nobody's.

    Returns:
        False: as many are wanted as may be, or the queue is full, and it was not asked for.

    Raises:
        DispatchError: the broker does not take it.
    """
    number = page_number(page_index)
    name = _drawing_name(document_id, page_index)
    asked = asked_drawings.ask(name, tenant=tenant, limit=limit)
    if asked is not Asked.FIRST:
        return asked is Asked.AGAIN
    is_sent = False
    try:
        with queue_room.place_for_drawing(limit=limit) as has_place:
            if has_place:
                _send(
                    _signature(
                        DRAW_TASK,
                        document_id,
                        page_index,
                        argsrepr=f"('doc={document_id}', 'page={number}')",
                        priority=Priority.BULK,
                    )
                )
                is_sent = True
    finally:
        if not is_sent:
            asked_drawings.forget(name)
    return is_sent


def end_drawing(document_id: UUID, page_index: int) -> None:
    """Note that nobody is at the image of a page any more, so that another one has its place."""
    asked_drawings.forget(_drawing_name(document_id, page_index))


def _drawing_name(document_id: UUID, page_index: int) -> str:
    return f"{document_id}.{page_number(page_index)}"


def _chunk_signature(chunk: ChunkMessage, priority: Priority) -> Signature[object]:
    first, last = page_number(chunk.page_start), page_number(chunk.page_stop - 1)
    return _signature(
        RECOGNIZE_TASK,
        chunk.chunk_id,
        argsrepr=f"('doc={chunk.document_id}', 'pages={first}-{last}')",
        priority=priority,
    )


def _assembly_signature(
    document_id: UUID, generation: int, priority: Priority
) -> Signature[object]:
    return _signature(
        ASSEMBLE_TASK,
        document_id,
        generation,
        argsrepr=f"('doc={document_id}', {generation})",
        priority=priority,
    )


def _signature(
    task: str, row_id: UUID, *rest: int, argsrepr: str, priority: Priority
) -> Signature[object]:
    """Make an immutable signature: a chord must not push its header's results into the body."""
    return app.signature(
        task,
        args=(str(row_id), *rest),
        immutable=True,
        options={
            "argsrepr": argsrepr,
            "ignore_result": True,
            "priority": PRIORITIES[priority],
        },
    )


def _send(message: Signature[object]) -> None:
    with faults_translated():
        message.apply_async(retry=False)
