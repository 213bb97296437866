"""Messages to a broker that may be away: an upload does not wait for each attempt."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from api.broker_rest import BrokerRest
from db.states import Priority
from workers.dispatch import DispatchError


class SendSplit(Protocol):
    """Says that a document waits; ``DispatchError`` when nobody hears it."""

    def __call__(self, document_id: UUID, *, priority: Priority) -> None: ...


class SendExport(Protocol):
    """Says that an export waits; False when there is no room, ``DispatchError`` likewise."""

    def __call__(self, export_id: UUID, document_id: UUID, *, priority: Priority) -> bool: ...


class SendDrawing(Protocol):
    """Asks for the image of a page; False when there is no room, ``DispatchError`` likewise."""

    def __call__(self, document_id: UUID, page_index: int, *, tenant: str) -> bool: ...


PlaceForSplit = Callable[[], AbstractContextManager[bool]]
"""Takes room in the queue for one document as long as the block lasts; False: there is none."""


@dataclass(frozen=True, slots=True)
class SplitMessages:
    """How a document is announced: room first, so that its row says who sends it."""

    place: PlaceForSplit
    send: SendSplit


class SparedDispatch:
    """Asks for room and sends, but neither while the broker rests from a failure.

    What is not sent is left to the sweep, as if the broker had refused it.
    """

    def __init__(
        self,
        send_split: SendSplit,
        place_for_split: PlaceForSplit,
        send_drawing: SendDrawing,
        send_export: SendExport,
        *,
        rest: BrokerRest,
    ) -> None:
        self._send_split = send_split
        self._place_for_split = place_for_split
        self._send_export = send_export
        self._send_drawing = send_drawing
        self._rest = rest

    def send_split(self, document_id: UUID, *, priority: Priority) -> None:
        """Say that a document waits.

        Raises:
            DispatchError: the broker does not take it, or did not take another one just now.
        """
        with self._rest.asking():
            self._send_split(document_id, priority=priority)

    def send_drawing(self, document_id: UUID, page_index: int, *, tenant: str) -> bool:
        """Ask for the image of a page; False: there is no room, or none for this tenant.

        Raises:
            DispatchError: as ``send_split``.
        """
        with self._rest.asking():
            return self._send_drawing(document_id, page_index, tenant=tenant)

    @contextmanager
    def place_for_split(self) -> Iterator[bool]:
        """Take room for one document; none in a broker that is away."""
        with ExitStack() as stack:
            has_place = False
            with suppress(DispatchError), self._rest.asking():
                has_place = stack.enter_context(self._place_for_split())
            yield has_place

    def send_export(self, export_id: UUID, document_id: UUID, *, priority: Priority) -> bool:
        """Say that an export waits, if a broker hears it and has room; return whether it was."""
        with suppress(DispatchError), self._rest.asking():
            return self._send_export(export_id, document_id, priority=priority)
        return False
