"""Make another form of a document's result and store it beside the result."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import structlog

from db import document_sources, documents, exports, known_outcome
from db.document_sources import ReadableBytes
from db.engine import Session, Transaction
from db.errors import StaleStateError
from db.exports import ExportClaim
from storage import keys
from storage.errors import StorageError
from storage.object_store import PART_BYTES, ObjectStore
from workers import claimed_work
from workers.lease import Lease
from workers.ocr.exports.formats import FORMATS, ExportFormat
from workers.ocr.exports.page_choice import parse_pages
from workers.ocr.exports.page_view import Page
from workers.ocr.exports.stored_result import open_result
from workers.ocr.exports.text_formats import TEXT_WRITERS
from workers.page_renderer import PageRenderer
from workers.searchable_document import write_searchable_pdf
from workers.source_file import SourceFile
from workers.work_rules import WorkRules

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Work:
    claim: ExportClaim
    source: ReadableBytes

    @property
    def name(self) -> ExportFormat:
        return next(known for known in FORMATS if known == self.claim.format)

    @property
    def wanted(self) -> range | None:
        return parse_pages(self.claim.pages) if self.claim.pages else None

    @property
    def result_key(self) -> str:
        return keys.result_key(self.claim.document_id, self.claim.generation)

    @property
    def key(self) -> str:
        return keys.export_key(
            self.claim.document_id,
            self.claim.generation,
            name=self.claim.format,
            pages=self.claim.pages,
            attempt=self.claim.attempt,
        )


def export_document(
    export_id: UUID,
    *,
    transaction: Transaction,
    store: ObjectStore,
    source_file: SourceFile,
    renderer: PageRenderer,
    rules: WorkRules,
) -> int:
    """Make an export that waits; return its bytes.

    0: nothing was to be done, its document was at fault, or somebody else has it. Run twice, the
    second run finds the first one's claim, or that it is done.
    """
    work = claimed_work.take(
        lambda session: exports.claim(
            session,
            export_id,
            worker=rules.worker,
            lease_s=rules.lease_s,
            max_attempts=rules.max_attempts,
        ),
        exports,
        read=_read_work,
        transaction=transaction,
        rules=rules,
    )
    if work is None:
        log.info("export skipped", export_id=str(export_id))
        return 0
    claim = work.claim
    structlog.contextvars.bind_contextvars(
        document_id=str(claim.document_id), attempt=claim.attempt
    )
    size_bytes = 0
    with (
        claimed_work.held(claim, exports, transaction=transaction, rules=rules) as held,
        _removed_if_stale(store, work.key),
    ):
        if work.name == "pdf":
            written_bytes = _write_pdf(work, store, source_file, renderer, held)
        else:
            written_bytes = _write_text(work, store, held)
        held.check()
        known_outcome.commit(
            transaction,
            lambda session: exports.finish(
                session, claim, result_key=work.key, size_bytes=written_bytes
            ),
            stands=lambda session, _: exports.is_finished(session, claim, result_key=work.key),
        )
        size_bytes = written_bytes
        log.info("export made", format=claim.format, pages=claim.pages, size_bytes=size_bytes)
    return size_bytes


@contextmanager
def _removed_if_stale(store: ObjectStore, key: str) -> Iterator[None]:
    """Remove what an attempt has written that is no longer the export's.

    Its document may be deleted, and its objects removed, so that nobody else would look for it.

    Raises:
        StaleStateError: the claim is lost.
    """
    try:
        yield
    except StaleStateError:
        with suppress(StorageError):
            store.delete([key])
        raise


def _read_work(session: Session, claim: ExportClaim) -> _Work:
    document = documents.get(session, claim.document_id)
    return _Work(claim, document_sources.readable(document))


def _write_text(work: _Work, store: ObjectStore, held: Lease) -> int:
    header, pages = _read(work, store, held)
    size_bytes = 0
    with store.writer(work.key, media_type=FORMATS[work.name].media_type) as written:
        for part in TEXT_WRITERS[work.name](header, pages):
            encoded = part.encode()
            written.write(encoded)
            size_bytes += len(encoded)
    return size_bytes


def _write_pdf(
    work: _Work, store: ObjectStore, source_file: SourceFile, renderer: PageRenderer, held: Lease
) -> int:
    source = source_file.fetch(
        work.claim.document_id, sha256=work.source.sha256, key=work.source.key
    )
    header, _ = _read(work, store, held)
    # Beside the source: where there was room for one there may be for the other.
    with tempfile.TemporaryFile(dir=source.parent) as made:
        write_searchable_pdf(
            source,
            made,
            header,
            lambda: _read(work, store, held)[1],
            renderer=renderer,
            wanted=work.wanted,
        )
        made.seek(0)
        size_bytes = 0
        with store.writer(work.key, media_type=FORMATS[work.name].media_type) as written:
            while part := made.read(PART_BYTES):
                held.check()
                written.write(part)
                size_bytes += len(part)
    return size_bytes


def _read(work: _Work, store: ObjectStore, held: Lease) -> tuple[dict[str, Any], Iterator[Page]]:
    """Return header and wanted pages of the result; before each page the lease is looked at."""
    header, pages = open_result(store.stream(work.result_key), wanted=work.wanted)
    return header, _checked(pages, held)


def _checked(pages: Iterator[Page], held: Lease) -> Iterator[Page]:
    for page in pages:
        held.check()
        yield page
