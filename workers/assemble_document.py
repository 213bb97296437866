"""Assemble a document: stream its page results into one result and publish it."""

import gzip
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import IO, Any
from uuid import UUID

import orjson
import structlog

from db import documents, known_outcome, pages
from db.documents import DocumentClaim
from db.engine import Transaction
from db.models import Document, Page
from db.states import DocumentState, PageState
from storage import keys
from storage.object_store import PART_BYTES, ObjectStore
from workers import claimed_work
from workers.content_cache import Content, content_key
from workers.lease import Lease
from workers.ocr.document_result import PAGE_SEPARATOR, DocumentSource, DocumentTotals
from workers.ocr.formats import MediaType
from workers.ocr.options import OcrOptions
from workers.ocr.page_image import PageFailure
from workers.ocr.page_text import page_text
from workers.ocr.result import page_json, skipped_page_json
from workers.work_rules import WorkRules

log = structlog.get_logger(__name__)

# Below this a result is put together in memory, above it on disk.
_SPOOL_BYTES = 16 * 2**20


@dataclass(frozen=True, slots=True)
class _Work:
    claim: DocumentClaim
    document: Document
    pages: Sequence[Page]


def assemble_document(
    document_id: UUID,
    generation: int,
    *,
    transaction: Transaction,
    store: ObjectStore,
    rules: WorkRules,
) -> str:
    """Write the result of a document whose chunks are all final; return the state it ends in.

    The message is not trusted: while chunks remain, or when somebody else assembles, nothing
    happens and the state is empty. Run twice it writes the same bytes and moves the state once.
    """
    work = _claim(document_id, generation, transaction=transaction, rules=rules)
    if work is None:
        return ""
    claim = work.claim

    state = ""
    with claimed_work.held(claim, documents, transaction=transaction, rules=rules) as held:
        written = _write_result(work, store=store, held=held)
        held.check()
        known_outcome.commit(
            transaction,
            lambda session: documents.finish(
                session,
                claim,
                state=written.state,
                result_key=written.result_key,
                result_size_bytes=written.size_bytes,
                values=written.columns,
            ),
            stands=lambda session, _: documents.is_finished(session, claim),
        )
        state = written.state
        log.info("document finished", state=state)
    return state


def _claim(
    document_id: UUID, generation: int, *, transaction: Transaction, rules: WorkRules
) -> _Work | None:
    work = claimed_work.take(
        lambda session: documents.claim_assembly(
            session,
            document_id,
            generation=generation,
            worker=rules.worker,
            lease_s=rules.lease_s,
            max_attempts=rules.max_attempts,
        ),
        documents,
        read=lambda session, claim: _Work(
            claim,
            documents.get(session, document_id),
            pages.list_of_document(session, document_id),
        ),
        transaction=transaction,
        rules=rules,
    )
    if work is None:
        log.info("assembly skipped", document_id=str(document_id))
        return None
    structlog.contextvars.bind_contextvars(document_id=str(document_id), attempt=work.claim.attempt)
    return work


@dataclass(frozen=True, slots=True)
class _Written:
    state: DocumentState
    result_key: str
    size_bytes: int
    columns: dict[str, Any]


def _write_result(work: _Work, *, store: ObjectStore, held: Lease) -> _Written:
    """Stream the page results into ``result.json`` and their text into ``result.txt``.

    Raises:
        RuntimeError: a page is missing or counted twice; a bug of ours, not to be published.
    """
    claim = work.claim
    options = OcrOptions.from_row(work.document.options)
    read_at = work.document.read_at
    totals = DocumentTotals()
    with (
        tempfile.SpooledTemporaryFile(_SPOOL_BYTES) as page_objects,
        tempfile.SpooledTemporaryFile(_SPOOL_BYTES) as text,
        store.writer(
            keys.result_text_key(claim.document_id, claim.generation),
            media_type="text/plain; charset=utf-8",
        ) as text_object,
    ):
        for number, raw in enumerate(_page_objects(work.pages, store)):
            held.check()
            page = orjson.loads(raw)
            totals.add(page)
            page_objects.write((b"," if number else b"") + raw)
            piece = (PAGE_SEPARATOR if number else "") + page_text(page)
            # The pieces of an escaped text, joined, are the escaped text.
            text.write(orjson.dumps(piece)[1:-1])
            text_object.write(piece.encode())
        header = totals.header(
            document_id=str(claim.document_id),
            source=_source(work.document),
            model_version=_model_version(work.pages),
            options=options.model_dump(mode="json"),
            warnings=options.warnings(len(work.pages)),
            read_at=None if read_at is None else read_at.isoformat(),
        )
        result_key = keys.result_key(claim.document_id, claim.generation)
        size_bytes = 0
        with store.writer(result_key, media_type="application/json") as result:
            for part in _result_parts(header, page_objects, text):
                result.write(part)
                size_bytes += len(part)
    usage = header["usage"]
    counted = usage["pages_ok"] + usage["pages_failed"] + usage["pages_skipped"]
    if counted != work.document.page_count:
        raise RuntimeError(f"{counted} pages in the result of {work.document.page_count}")
    return _Written(
        state=DocumentState(totals.state),
        result_key=result_key,
        size_bytes=size_bytes,
        columns={
            "pages_ok": usage["pages_ok"],
            "pages_failed": usage["pages_failed"],
            "pages_skipped": usage["pages_skipped"],
            "pages_cached": usage.get("pages_cached", 0),
            "truncated": totals.is_truncated,
            "model_version": header["model_version"],
            "content_key": _content_key(work.document, options, totals, header["model_version"]),
            **_error_columns(work.pages, totals),
        },
    )


def _page_objects(rows: Sequence[Page], store: ObjectStore) -> Iterator[bytes]:
    """Yield the JSON of every page in page order, reading a chunk's object once."""
    for result_key, group in groupby(rows, key=lambda row: row.result_key):
        chunk = list(group)
        if result_key is None:
            # Of a chunk that was given up, and of pages that nobody wanted; the ledger knows.
            yield from map(_unread_page, chunk)
            continue
        start, stop = chunk[0].result_start or 0, chunk[-1].result_stop or 0
        members = store.read_range(result_key, start=start, stop=stop)
        for row in chunk:
            member = members[(row.result_start or 0) - start : (row.result_stop or 0) - start]
            yield gzip.decompress(member)


def _unread_page(row: Page) -> bytes:
    if row.state == PageState.SKIPPED:
        return orjson.dumps(skipped_page_json(row.page_index))
    failure = PageFailure(row.page_index, row.error_code or "", row.error_detail or "")
    return orjson.dumps(page_json(failure))


def _result_parts(
    header: dict[str, Any], page_objects: IO[bytes], text: IO[bytes]
) -> Iterator[bytes]:
    yield orjson.dumps(header)[:-1] + b',"full_text":"'
    yield from _parts_of(text)
    yield b'","pages":['
    yield from _parts_of(page_objects)
    yield b"]}"


def _parts_of(file: IO[bytes]) -> Iterator[bytes]:
    file.seek(0)
    while part := file.read(PART_BYTES):
        yield part


def _source(document: Document) -> DocumentSource:
    return DocumentSource(
        filename=document.filename,
        sha256=document.sha256,
        media_type=document.media_type,
        size_bytes=document.size_bytes,
    )


def _model_version(rows: Sequence[Page]) -> str | None:
    """Return the version that read the document; several, when workers were being upgraded."""
    return ", ".join(sorted({row.model_version for row in rows if row.model_version})) or None


def _content_key(
    document: Document, options: OcrOptions, totals: DocumentTotals, model_version: str | None
) -> str | None:
    """Return what a document is found by that can serve others; None: it must serve none."""
    # Images are read at a size of their own. A PDF page below the wanted resolution met a limit.
    dpi = options.dpi if document.media_type == MediaType.PDF else 0
    if model_version is None or not totals.is_whole(dpi=dpi):
        return None
    if document.unlocked_key is not None:
        # Who sends it without its password, or with a wrong one, must not get it.
        return None
    return content_key(Content(document.tenant, document.sha256, options), model_version)


def _error_columns(rows: Sequence[Page], totals: DocumentTotals) -> dict[str, Any]:
    """Give a document without one good page the error of its first page."""
    if totals.state != "failed":
        return {}
    first = next(row for row in rows if row.error_code)
    return {"error_code": first.error_code, "error_detail": first.error_detail}
