"""Read ``multipart/form-data`` as it arrives: the only door to python-multipart.

Nothing is kept of a body but the header that is being read, so that a part of any length can
be passed on while it comes in.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, MultipartState, parse_options_header

# RFC 7578, section 4.7: other encodings are deprecated, and no client is known to send them.
_PLAIN_ENCODINGS = frozenset({b"", b"7bit", b"8bit", b"binary"})


class MalformedFormError(Exception):
    """The body is not the form that its Content-Type announces."""


class NotAFormError(Exception):
    """The Content-Type is not ``multipart/form-data``."""


@dataclass(frozen=True, slots=True)
class PartStarted:
    """A part begins; ``filename`` is None for a plain field, and as the client sent it else."""

    name: str
    filename: str | None


@dataclass(frozen=True, slots=True)
class PartContent:
    """The next bytes of the part that began last."""

    content: bytes


@dataclass(frozen=True, slots=True)
class PartEnded:
    """The part that began last is complete."""


FormEvent = PartStarted | PartContent | PartEnded


class FormReader:
    """Turns the blocks of a body into events, the same whatever the blocks are.

    Only how the bytes of one part are spread over ``PartContent`` events depends on the blocks.
    """

    def __init__(self, content_type: str | None) -> None:
        kind, parameters = parse_options_header(content_type)
        if kind != b"multipart/form-data":
            raise NotAFormError
        boundary = parameters.get(b"boundary")
        if not boundary:
            raise MalformedFormError("the Content-Type has no boundary")
        self._events: list[FormEvent] = []
        self._header_name = b""
        self._header_value = b""
        self._headers: dict[bytes, bytes] = {}
        try:
            self._parser = MultipartParser(
                boundary,
                callbacks={
                    "on_part_begin": self._begin_part,
                    "on_header_field": self._extend_header_name,
                    "on_header_value": self._extend_header_value,
                    "on_header_end": self._end_header,
                    "on_headers_finished": self._start_part,
                    "on_part_data": self._take_content,
                    "on_part_end": self._end_part,
                },
            )
        except FormParserError as error:
            raise MalformedFormError("the boundary is too long") from error

    def feed(self, block: bytes) -> Sequence[FormEvent]:
        """Return what the next bytes of the body, of any length, complete.

        Raises:
            MalformedFormError: the body is not a form.
        """
        self._events = []
        try:
            self._parser.write(block)
        except FormParserError as error:
            raise MalformedFormError("the body is not well-formed multipart/form-data") from error
        return self._events

    def close(self) -> None:
        """Check at the end of the body that the form is complete.

        Raises:
            MalformedFormError: the body ends before its closing boundary.
        """
        if self._parser.state != MultipartState.END:
            raise MalformedFormError("the body ends before its closing boundary")

    def _begin_part(self) -> None:
        self._headers = {}

    def _extend_header_name(self, block: bytes, start: int, stop: int) -> None:
        self._header_name += block[start:stop]

    def _extend_header_value(self, block: bytes, start: int, stop: int) -> None:
        self._header_value += block[start:stop]

    def _end_header(self) -> None:
        self._headers[self._header_name.lower()] = self._header_value.strip(b" \t")
        self._header_name = self._header_value = b""

    def _start_part(self) -> None:
        _, parameters = parse_options_header(self._headers.get(b"content-disposition"))
        name = parameters.get(b"name")
        if name is None:
            raise MalformedFormError("a part has no name in its Content-Disposition")
        encoding = self._headers.get(b"content-transfer-encoding", b"")
        if encoding.lower() not in _PLAIN_ENCODINGS:
            raise MalformedFormError("a part has a Content-Transfer-Encoding; send it as it is")
        filename = parameters.get(b"filename")
        self._events.append(
            PartStarted(
                name.decode(errors="replace"),
                None if filename is None else filename.decode(errors="replace"),
            )
        )

    def _take_content(self, block: bytes, start: int, stop: int) -> None:
        self._events.append(PartContent(block[start:stop]))

    def _end_part(self) -> None:
        self._events.append(PartEnded())
