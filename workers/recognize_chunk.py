"""Recognize a chunk: render its pages, read them, store and publish their results."""

import gzip
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import UUID

import orjson
import structlog

from db import chunks, document_sources, documents, known_outcome
from db.chunks import ChunkClaim, PageRecord
from db.document_sources import ReadableBytes
from db.engine import Session, Transaction
from db.states import PageState, Priority
from storage import keys
from storage.object_store import ObjectStore
from workers import claimed_work, dispatch, failures
from workers.dispatch import DispatchError
from workers.lease import Lease
from workers.ocr.errors import DocumentError
from workers.ocr.formats import MediaType
from workers.ocr.options import OcrOptions
from workers.ocr.page_image import PageFailure
from workers.ocr.page_reader import Engine, PageReader
from workers.ocr.reduced_page import REDUCTION, reduce_image_page, warn_of_reduction
from workers.ocr.rendered_page import RenderedPage
from workers.page_cache import PageCache
from workers.page_outcome import PageOutcome, outcome_of
from workers.page_renderer import PageRenderer
from workers.source_file import SourceFile
from workers.work_metrics import count_page
from workers.work_rules import WorkRules

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ChunkOutcome:
    """How many pages of a chunk were read and how many failed; zeros when nothing was done."""

    pages_ok: int = 0
    pages_failed: int = 0


@dataclass(frozen=True, slots=True)
class _Work:
    claim: ChunkClaim
    tenant: str
    source: ReadableBytes
    options: OcrOptions
    priority: Priority

    @property
    def page_indexes(self) -> range:
        return range(self.claim.page_start, self.claim.page_stop)


def recognize_chunk(
    chunk_id: UUID,
    *,
    transaction: Transaction,
    store: ObjectStore,
    source_file: SourceFile,
    renderer: PageRenderer,
    engine: Engine,
    rules: WorkRules,
    cache: PageCache | None = None,
) -> ChunkOutcome:
    """Read the pages of a chunk and publish them, once, however often the message arrives.

    A page that was read before is served from that reading; without ``cache`` none is.

    A page that cannot be read is a recorded failure of that page. The last try of an isolated page
    is made at half the resolution, and its result says so. The results are written under
    the attempt's own key and count only when the row says so, so a late attempt changes nothing.
    """
    work = _claim(chunk_id, transaction=transaction, rules=rules)
    if work is None:
        return ChunkOutcome()
    claim = work.claim

    outcome = ChunkOutcome()
    with claimed_work.held(
        claim,
        chunks,
        transaction=transaction,
        rules=rules,
        note_failure=lambda session, code: chunks.note_failure(session, claim, code),
    ) as held:
        path = source_file.fetch(claim.document_id, sha256=work.source.sha256, key=work.source.key)
        reader = PageReader(engine)
        rendered = _while_held(held, _render(renderer, path, work))
        result_key = keys.chunk_pages_key(claim.document_id, claim.chunk_id, claim.attempt)
        records = store_pages(store, result_key, _read(rendered, reader, work, cache))
        _require_all_pages(records, work)
        held.check()
        if _publish(claim, result_key, records, transaction=transaction, rules=rules):
            _send_assembly(work, rules)
        for record in records:
            count_page(record.state, record.values)
        pages_ok = sum(record.state is PageState.OK for record in records)
        outcome = ChunkOutcome(pages_ok, len(records) - pages_ok)
        log.info("chunk recognized", pages_ok=pages_ok, pages_failed=outcome.pages_failed)
    return outcome


def _claim(chunk_id: UUID, *, transaction: Transaction, rules: WorkRules) -> _Work | None:
    work = claimed_work.take(
        lambda session: chunks.claim(
            session,
            chunk_id,
            worker=rules.worker,
            lease_s=rules.lease_s,
            max_attempts=rules.max_attempts,
        ),
        chunks,
        read=_read_work,
        transaction=transaction,
        rules=rules,
    )
    if work is None:
        log.info("chunk skipped", chunk_id=str(chunk_id))
        return None
    structlog.contextvars.bind_contextvars(
        document_id=str(work.claim.document_id),
        chunk_id=str(chunk_id),
        attempt=work.claim.attempt,
    )
    return work


def _read_work(session: Session, claim: ChunkClaim) -> _Work:
    document = documents.get(session, claim.document_id)
    return _Work(
        claim,
        document.tenant,
        document_sources.readable(document),
        OcrOptions.from_row(document.options),
        Priority(document.priority),
    )


def _render(
    renderer: PageRenderer, path: Path, work: _Work
) -> Iterator[RenderedPage | PageFailure]:
    remaining = list(work.page_indexes)
    options = work.options
    is_reduced = work.claim.is_last_try
    try:
        is_pdf = renderer.open(path).media_type is MediaType.PDF
        for page in renderer.pages(
            work.page_indexes,
            dpi=options.dpi / REDUCTION if is_reduced else options.dpi,
            mode=options.mode,
            text_order=options.text_order,
        ):
            remaining.remove(page.page_index)
            # An image is rendered at its own size, whatever was asked for.
            if is_reduced and not is_pdf and isinstance(page, RenderedPage):
                yield reduce_image_page(page)
            else:
                yield page
    except DocumentError as error:
        # The split opened this file, so its reader died or ran out of time on it just now. The
        # pages that are left say so; those before, and the other chunks, are not touched.
        failure = failures.classify(error)
        for page_index in remaining:
            yield PageFailure(page_index, failure.code, failure.sentence)


def _read(
    rendered: Iterator[RenderedPage | PageFailure],
    reader: PageReader,
    work: _Work,
    cache: PageCache | None,
) -> Iterator[PageOutcome]:
    is_reduced = work.claim.is_last_try
    # What came with a password serves nobody, and asks for nothing.
    is_encrypted = work.source.key is not None
    if cache is not None and not is_reduced and not is_encrypted:
        yield from cache.read_pages(rendered, reader, tenant=work.tenant)
        return
    results = reader.read_pages(rendered)
    for result in warn_of_reduction(results) if is_reduced else results:
        yield outcome_of(result, reader.model_version)


def _require_all_pages(records: Sequence[PageRecord], work: _Work) -> None:
    """Refuse to publish a chunk in which a page is missing, doubled or somebody else's.

    Raises:
        RuntimeError: the engine did not give back what it got; a bug of ours.
    """
    read = [record.page_index for record in records]
    if read != list(work.page_indexes):
        raise RuntimeError(f"asked for pages {work.page_indexes}, got {read}")


def _publish(
    claim: ChunkClaim,
    result_key: str,
    records: Sequence[PageRecord],
    *,
    transaction: Transaction,
    rules: WorkRules,
) -> bool:
    """Let the results count; return whether the assembly is to be called, which no chord does."""
    return known_outcome.commit(
        transaction,
        lambda session: chunks.publish(
            session,
            claim,
            result_key=result_key,
            pages=records,
            assemble_after_s=rules.dispatch_grace_s,
        ),
        stands=lambda session, _: chunks.is_published(
            session, claim.chunk_id, result_key=result_key
        ),
    )


def _send_assembly(work: _Work, rules: WorkRules) -> None:
    """Say that the document is ready, where no chord does; the sweep would say so later."""
    try:
        dispatch.send_assembly_if_place(
            work.claim.document_id,
            work.claim.generation,
            priority=work.priority,
            limit=rules.queue_limit,
        )
    except DispatchError:
        log.warning("assembly not sent")


def _while_held(
    held: Lease, pages: Iterable[RenderedPage | PageFailure]
) -> Iterator[RenderedPage | PageFailure]:
    for page in pages:
        held.check()  # a zombie stops at the next page instead of working on for nothing
        yield page


def store_pages(store: ObjectStore, key: str, pages: Iterable[PageOutcome]) -> list[PageRecord]:
    """Write one object of page results and return where in it each page lies.

    Each page is a gzip member of its own, so that one page is one range of bytes and the whole
    object is one valid gzip file. The same pages give the same bytes.
    """
    records = []
    start = 0
    with store.writer(key, media_type=keys.PAGES_MEDIA_TYPE) as writer:
        for page in pages:
            member = gzip.compress(orjson.dumps(page.body), mtime=0)
            writer.write(member)
            stop = start + len(member)
            values = {**page.record.values, "result_start": start, "result_stop": stop}
            records.append(replace(page.record, values=values))
            start = stop
    return records
