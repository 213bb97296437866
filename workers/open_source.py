"""Open the source of a document that is being split; it is copied or unlocked first if need be."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from db import document_sources, documents, known_outcome
from db.document_sources import ReadableBytes
from db.documents import DocumentClaim
from db.engine import Session, Transaction
from storage import source_object
from storage.object_store import ObjectStore
from storage.source_object import SourceObject
from workers.copy_source import SourceCopier
from workers.ocr.errors import EncryptedDocumentError
from workers.page_renderer import PageRenderer
from workers.source_file import SourceFile
from workers.unlocked_pdf import store_unlocked, write_unlocked

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ClaimedSource:
    """Where the bytes of a claimed document lie.

    Attributes:
        claim: of the split.
        sha256: of the bytes as they came; empty until an object of a bucket is copied.
        object: of a user's bucket; None for an upload.
        unlocked: the bytes without their encryption, where an earlier attempt made them.
        password: that came with them and is still kept.
    """

    claim: DocumentClaim
    sha256: str
    object: SourceObject | None
    unlocked: ReadableBytes | None
    password: str | None = field(repr=False)


def read_source(session: Session, claim: DocumentClaim) -> ClaimedSource:
    """Return where the bytes of a document lie, in the transaction that claims it."""
    document = documents.get(session, claim.document_id)
    readable = document_sources.readable(document)
    return ClaimedSource(
        claim,
        document.sha256,
        source_object.from_row(document.source),
        None if readable.key is None else readable,
        document_sources.find_password(session, claim.document_id),
    )


class SourceOpener:
    """Makes sources readable, once for each document.

    Args:
        store: takes the bytes without their encryption.
        transaction: opens a transaction.
        source_file: the bytes on local disk.
        copier: brings objects of users to where the bytes of a document lie.
        renderer: opens them.
    """

    def __init__(
        self,
        *,
        store: ObjectStore,
        transaction: Transaction,
        source_file: SourceFile,
        copier: SourceCopier,
        renderer: PageRenderer,
    ) -> None:
        self._store = store
        self._transaction = transaction
        self._source_file = source_file
        self._copier = copier
        self._renderer = renderer

    def ensure_copied(self, source: ClaimedSource, *, check: Callable[[], None]) -> str:
        """Copy a document's bytes if they lie in a user's bucket still; return their SHA-256.

        What is copied is noted, and the document's own: from here on it is as if it had been
        uploaded.

        Errors of ``SourceCopier.copy`` pass through, and those of ``db.known_outcome.commit``.
        """
        if source.sha256:
            return source.sha256
        assert source.object is not None  # noqa: S101 - an upload has its hash, for the type checker
        claim = source.claim
        copied = self._copier.copy(claim.document_id, source.object, check=check)
        # Before the file is opened: a retry after a failure then finds the copy, whatever has
        # become of the object.
        known_outcome.commit(
            self._transaction,
            lambda session: document_sources.record_source(
                session,
                claim,
                media_type=copied.media_type,
                size_bytes=copied.size_bytes,
                sha256=copied.sha256,
            ),
            stands=lambda session, _: document_sources.has_source(session, claim),
        )
        log.info("source copied", size_bytes=copied.size_bytes)
        return copied.sha256

    def open_readable(
        self, source: ClaimedSource, sha256: str, *, check: Callable[[], None]
    ) -> int:
        """Open a document in the renderer and return how many pages it has.

        One that needs the password that came with it is written without its encryption, stored
        so, and read so from then on; nobody but this has to know the password.

        Args:
            source: of the document.
            sha256: of its bytes, as ``ensure_copied`` returned it.
            check: is called between two parts of what is stored; what it raises ends that.

        Raises:
            EncryptedDocumentError: the password is missing or wrong.
            DocumentError: the file is at fault.
            StorageError: the store does not do its part.
            StaleStateError: the claim is no longer ours.
        """
        try:
            return self._opened(source, source.unlocked or ReadableBytes(sha256))
        except EncryptedDocumentError:
            if source.password is None:
                raise
            return self._opened(source, self._unlocked(source, sha256, source.password, check))

    def _opened(self, source: ClaimedSource, readable: ReadableBytes) -> int:
        path = self._source_file.fetch(
            source.claim.document_id, sha256=readable.sha256, key=readable.key
        )
        return self._renderer.open(path).page_count

    def _unlocked(
        self, source: ClaimedSource, sha256: str, password: str, check: Callable[[], None]
    ) -> ReadableBytes:
        claim = source.claim
        path = self._source_file.fetch(claim.document_id, sha256=sha256)
        # Beside the source: where there was room for one there may be for the other. It has no
        # name, and so goes with this process.
        with tempfile.TemporaryFile(dir=path.parent) as file:
            write_unlocked(path, file, password=password, limits=self._renderer.limits)
            key, unlocked_sha256 = store_unlocked(
                self._store, claim.document_id, claim.attempt, file, check=check
            )
        known_outcome.commit(
            self._transaction,
            lambda session: document_sources.record_unlocked(
                session, claim, unlocked_key=key, sha256=unlocked_sha256
            ),
            stands=lambda session, _: document_sources.is_unlocked(
                session, claim, unlocked_key=key
            ),
        )
        log.info("source unlocked")
        return ReadableBytes(unlocked_sha256, key)
