"""The form of an upload: its file goes on while it arrives, its fields are kept."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal
from uuid import UUID

import anyio
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
)
from pydantic_core import PydanticCustomError, from_json

from api.errors import ApiError, FieldProblem, InvalidFieldsError
from api.filenames import MAX_LENGTH, safe_filename
from api.multipart import FormEvent, FormReader, PartContent, PartEnded, PartStarted
from db import states
from db.models import Batch
from db.states import CLOSED_BATCH_STATES
from workers.ocr.options import OcrOptions

FILE_FIELD = "file"
FIELDS = frozenset({"options", "batch_id", "priority", "external_id", "metadata", "password"})
_JSON_FIELDS = ("options", "metadata")
MAX_FIELD_BYTES = 64 * 2**10
# Of the sender's own metadata as JSON: it is in every answer about the document.
MAX_METADATA_BYTES = 16 * 2**10
# The file is passed on in blocks of this size: few thread switches, and little memory a client.
WRITE_BYTES = 2**20
# What a body may have beside its file: boundaries, headers, the other fields.
FORM_OVERHEAD_BYTES = 2**20

Priority = Literal["interactive", "bulk"]
MAX_PASSWORD_LENGTH = 127  # no password of a PDF is longer


def _one_line(password: SecretStr) -> SecretStr:
    """Drop the line end that a password read from a file has.

    Raises:
        ValueError: nothing is left, or it has a character that Postgres cannot keep.
    """
    stated = password.get_secret_value().rstrip("\r\n")
    if not stated:
        raise ValueError("must have more than line ends")
    if "\0" in stated:
        raise ValueError("must not have NUL characters")
    return SecretStr(stated)


Password = Annotated[
    SecretStr, Field(min_length=1, max_length=MAX_PASSWORD_LENGTH), AfterValidator(_one_line)
]


class DocumentFields(BaseModel):
    """What is asked for of a document; ``options`` are those that were given, and no others."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    options: dict[str, Any] = Field(default_factory=dict)
    batch_id: UUID | None = None
    priority: Priority | None = None
    external_id: str | None = Field(default=None, max_length=MAX_LENGTH)
    metadata: dict[str, Any] | None = None

    @field_validator("external_id")
    @classmethod
    def _is_printable(cls, given: str | None) -> str | None:
        return require_printable(given)

    @field_validator("metadata")
    @classmethod
    def _can_be_kept(cls, given: dict[str, Any] | None) -> dict[str, Any] | None:
        return require_keepable(given)

    @property
    def lane(self) -> states.Priority:
        """The priority that applies."""
        return states.Priority(lane_of(self.priority, has_batch=self.batch_id is not None))


class WithPassword(BaseModel):
    """A request that may bring a password."""

    password: Password | None = Field(
        default=None,
        description="Of an encrypted PDF. Kept until the document is split, shown by nothing.",
    )

    @property
    def stated_password(self) -> str | None:
        """The password in the clear, for the one who keeps it."""
        return None if self.password is None else self.password.get_secret_value()


class UploadFields(DocumentFields, WithPassword):
    """The fields beside the file."""


def require_printable(external_id: str | None) -> str | None:
    """Return an id of the sender's.

    Raises:
        ValueError: it has control characters.
    """
    if external_id is not None and not external_id.isprintable():
        raise ValueError("must not have control characters")
    return external_id


def require_keepable(metadata: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return metadata of the sender's.

    Raises:
        PydanticCustomError: they are too large, or hold what JSON cannot say.
    """
    try:
        # NaN, numbers that are none once they are read (1e999) and lone surrogates cannot be kept.
        text = json.dumps(metadata, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        size_bytes = len(text.encode())
    except (ValueError, RecursionError) as error:
        raise PydanticCustomError("metadata_json", "is not JSON") from error
    if size_bytes > MAX_METADATA_BYTES:
        raise PydanticCustomError(
            "metadata_size", f"has more than {MAX_METADATA_BYTES:,} bytes as JSON"
        )
    return metadata


@dataclass(slots=True)
class _FormInProgress:
    """What has been read so far; ``pending`` are bytes of the file that are not passed on yet."""

    pending: bytearray = field(default_factory=bytearray)
    filename: str | None = None
    fields: dict[str, str] = field(default_factory=dict)
    _name: str = ""
    _value: bytearray = field(default_factory=bytearray)

    def take(self, event: FormEvent) -> None:
        match event:
            case PartStarted():
                self._start(event)
            case PartContent(content) if self._name == FILE_FIELD:
                self.pending += content
            case PartContent(content):
                self._value += content
                if len(self._value) > MAX_FIELD_BYTES:
                    raise InvalidFieldsError(
                        FieldProblem(self._name, f"has more than {MAX_FIELD_BYTES:,} bytes")
                    )
            case PartEnded() if self._name != FILE_FIELD:
                self._end_field()

    def take_pending(self) -> bytes:
        block = bytes(self.pending)
        self.pending.clear()
        return block

    def _start(self, part: PartStarted) -> None:
        self._name = part.name
        self._value.clear()
        if part.name == FILE_FIELD:
            if self.filename is not None:
                raise InvalidFieldsError(
                    FieldProblem(FILE_FIELD, "is there twice; send one document a request")
                )
            if part.filename is None:
                raise InvalidFieldsError(
                    FieldProblem(FILE_FIELD, "has no file name; send it as a file")
                )
            self.filename = safe_filename(part.filename)
            if len(self.filename) > MAX_LENGTH:
                raise InvalidFieldsError(
                    FieldProblem(FILE_FIELD, f"has a name of more than {MAX_LENGTH} characters")
                )
        elif part.name not in FIELDS:
            # The name itself may be anything, and is not repeated.
            raise InvalidFieldsError(
                FieldProblem(
                    "?", f"is unknown; known are {FILE_FIELD}, {', '.join(sorted(FIELDS))}"
                )
            )
        elif part.name in self.fields:
            raise InvalidFieldsError(FieldProblem(part.name, "is there twice"))

    def _end_field(self) -> None:
        try:
            self.fields[self._name] = self._value.decode()
        except UnicodeDecodeError as error:
            raise InvalidFieldsError(FieldProblem(self._name, "is not UTF-8")) from error


async def timely(
    blocks: AsyncIterator[bytes], *, idle_s: float, min_bytes_per_s: float
) -> AsyncIterator[bytes]:
    """Yield the blocks of a body, as long as they keep coming, and fast enough.

    The rate is taken over ``idle_s`` seconds of waiting at a time. Only waiting counts: a client
    that is kept back while its bytes are stored is not slow.

    Raises:
        ApiError: none came for ``idle_s`` seconds, or too few in them.
    """
    waited_s = 0.0
    received_bytes = 0
    while True:
        began_s = anyio.current_time()
        try:
            with anyio.fail_after(idle_s):
                block = await anext(blocks)
        except StopAsyncIteration:
            return
        except TimeoutError as error:
            raise ApiError("request_timeout") from error
        waited_s += anyio.current_time() - began_s
        received_bytes += len(block)
        if waited_s >= idle_s:
            if received_bytes < min_bytes_per_s * waited_s:
                raise ApiError("request_timeout")
            waited_s, received_bytes = 0.0, 0
        yield block


async def receive_form(
    blocks: AsyncIterator[bytes],
    content_type: str | None,
    *,
    before_file: Callable[[Mapping[str, str]], Awaitable[None]],
    write: Callable[[bytes], Awaitable[None]],
    max_file_bytes: int,
) -> tuple[str, UploadFields]:
    """Read a whole upload, and return the safe name of its file and its fields.

    Args:
        blocks: the body as it arrives.
        content_type: the header of the request.
        before_file: is told the fields that are known when the file begins, as they were sent;
            what it raises ends the upload.
        write: takes the bytes of the file, in order, in blocks of about ``WRITE_BYTES``.
        max_file_bytes: the limit that ``write`` keeps; the rest of the body is limited to
            ``FORM_OVERHEAD_BYTES`` here.

    Raises:
        NotAFormError: the request is not a form.
        MalformedFormError: the body is not the form that the request announces.
        InvalidFieldsError: a field is unknown, wrong, twice or missing.
        ApiError: the body is too large.
    """
    reader = FormReader(content_type)
    form = _FormInProgress()
    size_bytes = 0
    has_file_begun = False
    async for block in blocks:
        size_bytes += len(block)
        for event in reader.feed(block):
            form.take(event)
        if form.filename is not None and not has_file_begun:
            has_file_begun = True
            await before_file(form.fields)
        if len(form.pending) >= WRITE_BYTES:
            await write(form.take_pending())
        if size_bytes > max_file_bytes + FORM_OVERHEAD_BYTES:
            raise ApiError("body_too_large")
    reader.close()
    if form.pending:
        await write(form.take_pending())
    if form.filename is None:
        raise InvalidFieldsError(
            FieldProblem(FILE_FIELD, "is missing; send the document as a part of this name")
        )
    return form.filename, parse_fields(form.fields)


def lane_of(priority: str | None, *, has_batch: bool) -> str:
    """Return the priority of a document: a batch must not make wait who sends a single one."""
    return priority or ("bulk" if has_batch else "interactive")


def parse_fields(sent: Mapping[str, str]) -> UploadFields:
    """Check the fields; an empty one counts as not sent, as HTML forms send it.

    Raises:
        InvalidFieldsError: one of them is wrong; all problems are listed.
    """
    given: dict[str, object] = {name: value for name, value in sent.items() if value}
    for name in _JSON_FIELDS:
        if name in given:
            given[name] = _from_json(name, sent[name])
    try:
        fields = UploadFields.model_validate(given)
    except ValidationError as error:
        raise InvalidFieldsError(*problems_of(error)) from error
    resolve_options({}, fields.options)
    return fields


def _from_json(name: str, text: str) -> object:
    try:
        value: object = from_json(text)
    except ValueError as error:
        raise InvalidFieldsError(FieldProblem(name, "is not JSON")) from error
    return value


def resolve_options(inherited: Mapping[str, Any], given: Mapping[str, Any]) -> OcrOptions:
    """Return the options of a document; what is given stands above what its batch says.

    Raises:
        InvalidFieldsError: an option is unknown or has a value that is not allowed.
    """
    try:
        return OcrOptions.model_validate({**inherited, **given})
    except ValidationError as error:
        raise InvalidFieldsError(*problems_of(error, within="options")) from error


def require_open(batch: Batch) -> None:
    """Refuse documents for a batch that takes no more.

    Raises:
        ApiError: the batch was closed or cancelled.
    """
    if batch.state in CLOSED_BATCH_STATES:
        raise ApiError("batch_closed")


def problems_of(error: ValidationError, *, within: str = "") -> list[FieldProblem]:
    """Return what a validation found, without the values that it found wrong."""
    return [
        FieldProblem(".".join(filter(None, [within, *map(str, each["loc"])])), each["msg"])
        for each in error.errors(include_input=False, include_url=False, include_context=False)
    ]
