"""Send one file: look at it, find out whether its content was sent, and note what came of it."""

import hashlib
import json
import threading
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from cli.client import ApiClient
from cli.console import as_text
from cli.errors import ApiError
from cli.ingest import journal as states
from cli.ingest.content import Content, ContentError, Digest
from cli.ingest.found import Found, Refusal, SentFields
from cli.ingest.journal import Journal
from cli.ingest.patience import Patience, is_of_one_file
from cli.ingest.turns import Turn
from workers.ocr.formats import sniff

_NAME_CHARACTERS: Final = 200  # the API takes 255, and names a result after it
_STRIPES: Final = 256
_INTERNAL: Final = "internal"
_BAD_REQUEST: Final = 400


@dataclass(frozen=True, slots=True)
class Sent:
    """What came of one file, for whoever watches.

    Attributes:
        path: for people.
        state: one of the journal's.
        size_bytes: None where it was not read.
        document_id: None where there is none.
        code: why not.
        message: likewise.
    """

    path: str
    state: str
    size_bytes: int | None = None
    document_id: UUID | None = None
    code: str | None = None
    message: str | None = None


class Uploader:
    """Sends files to one batch; threads may use it at once."""

    def __init__(
        self, client: ApiClient, journal: Journal, batch_id: UUID, patience: Patience
    ) -> None:
        self._client = client
        self._journal = journal
        self._batch_id = batch_id
        self._patience = patience
        # Of two files of one content the second waits, and finds the document of the first.
        self._locks = [threading.Lock() for _ in range(_STRIPES)]

    def refuse(self, found: Found, key: bytes, refusal: Refusal) -> Sent:
        """Note that a file is not sent."""
        state = states.SKIPPED if refusal.is_skip else states.REFUSED
        return self._fail(found, key, state, refusal.code, refusal.message)

    def send(self, found: Found, key: bytes, content: Content, turn: Turn) -> Sent:
        """Send a file, unless the batch has a document of its content; closes the content.

        Args:
            found: the file.
            key: of its entry in the journal.
            content: what it holds.
            turn: its place among the files of the run; passed on.

        Raises:
            ApiError: the API refuses everything, or has been away for too long.
            StoppedError: the run is to end.
            CommandError: the journal cannot be written.
        """
        try:
            digest = content.digest()
            refusal = unsuitable(digest, is_named=found.is_named)
            if refusal is not None:
                return self.refuse(found, key, refusal)
            identity = identity_of(digest.sha256, found.fields)
            # Of files that are equal the first one found stands for all, whoever is read first.
            turn.wait()
            name = self._journal.claim(
                key,
                identity=identity,
                sha256=digest.sha256,
                filename=short_name(found.name),
                size_bytes=digest.size_bytes,
            )
            turn.pass_on()
            return self._send(found, key, content, digest, identity=identity, name=name)
        except ContentError as error:
            return self._fail(found, key, states.FAILED, error.code, error.message)
        finally:
            turn.pass_on()
            content.close()

    def _send(
        self,
        found: Found,
        key: bytes,
        content: Content,
        digest: Digest,
        *,
        identity: str,
        name: str,
    ) -> Sent:
        with self._locks[int(identity[:2], 16)]:
            document_id = self._journal.document_of(identity)
            if document_id is None:
                try:
                    document_id = self._patience.call(
                        lambda: self._submit(found.fields, content, digest, name, identity)
                    )
                except ApiError as error:
                    if error.document_id is not None:
                        # The key holds content, fields and batch: only the name was another one,
                        # that of a file of the same content which an earlier journal knew.
                        document_id = error.document_id
                    elif is_of_one_file(error):
                        return self._fail(found, key, states.REJECTED, error.code, error.message)
                    elif error.code == _INTERNAL or error.status == _BAD_REQUEST:
                        return self._fail(found, key, states.FAILED, error.code, error.message)
                    else:
                        raise
            state = self._journal.note_document(key, identity=identity, document_id=document_id)
        return Sent(found.path, state, digest.size_bytes, document_id)

    def _submit(
        self, fields: SentFields, content: Content, digest: Digest, name: str, identity: str
    ) -> UUID:
        stream = content.open(digest)
        try:
            return self._client.submit_stream(
                stream,  # type: ignore[arg-type] # as far as it is used
                name,
                fields={
                    "batch_id": str(self._batch_id),
                    "options": fields.options,
                    "metadata": fields.metadata,
                    "external_id": fields.external_id,
                },
                idempotency_key=f"ingest-{_hash([str(self._batch_id), identity])}",
            ).id
        finally:
            stream.close()

    def _fail(self, found: Found, key: bytes, state: str, code: str, message: str) -> Sent:
        self._journal.note_failure(key, state=state, code=code, message=message)
        return Sent(found.path, state, code=code, message=message)


def unsuitable(digest: Digest, *, is_named: bool) -> Refusal | None:
    """Say why a file need not be sent to be refused; None: it may be a document."""
    if not digest.size_bytes:
        return Refusal("empty", "It is empty.")
    if sniff(digest.head) is None:
        return Refusal(
            "unsupported_media_type",
            "It is none of PDF, PNG, JPEG, TIFF, WebP and BMP.",
            is_skip=not is_named,
        )
    return None


def identity_of(sha256: str, fields: SentFields) -> str:
    """Return what files have in common that are one document: bytes, and what goes with them."""
    return _hash([sha256, fields.options, fields.metadata, fields.external_id])


def short_name(name: str) -> str:
    """Return a name that the API takes: without what is no UTF-8, and not too long."""
    text = as_text(name)
    if len(text) <= _NAME_CHARACTERS:
        return text
    stem, dot, ending = text.rpartition(".")
    ending = f"{dot}{ending}" if stem and len(ending) < 10 else ""  # noqa: PLR2004 - as endings are
    return text[: _NAME_CHARACTERS - len(ending)] + ending


def _hash(parts: list[str | None]) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
