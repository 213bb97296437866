"""A page over which every worker dies costs its document that page and no other."""

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

import pymupdf
import pytest

from db.models import Chunk
from db.states import ChunkState, DocumentState
from tests.support.engines import NumberingEngine, PoisonedEngine, ProcessDeathError
from tests.support.pipeline import Pipeline, tiff_of
from tests.support.results import require_valid
from workers.app import HostExhaustedError
from workers.ocr.errors import InferenceError, OcrError, OutOfMemoryError, RenderChildError
from workers.ocr.page_image import PageImage

FIVE_PAGES = tiff_of(5)
POISON = 2

Harm = Callable[[PageImage], None]


def raises(error: BaseException) -> Harm:
    def do_harm(_page: PageImage) -> None:
        raise error

    return do_harm


def pdf_of(pages: int) -> bytes:
    """Return a PDF whose pages are 200 x 400 pixels at 200 dpi."""
    document = pymupdf.open()
    for _ in range(pages):
        document.new_page(width=72, height=144)
    body: bytes = document.tobytes()
    return body


def recognize_all(pipeline: Pipeline, document_id: UUID) -> int:
    """Send every chunk that waits; return how often one ended badly."""
    failed = 0
    with pipeline.database.transaction() as session:
        waiting = session.query(Chunk.id).filter(
            Chunk.document_id == document_id,
            Chunk.state.in_([ChunkState.QUEUED, ChunkState.RUNNING]),
        )
        ids = [row.id for row in waiting]
    for chunk_id in ids:
        try:
            pipeline.recognize(chunk_id)
        except (OcrError, HostExhaustedError, ProcessDeathError):
            failed += 1
    return failed


def work_off(pipeline: Pipeline, document_id: UUID) -> int:
    """Let workers and sweep take turns until the document is final; return the bad ends."""
    pipeline.split(document_id)
    failed = 0
    for _ in range(4 * pipeline.rules.max_attempts):
        failed += recognize_all(pipeline, document_id)
        pipeline.expire_leases()
        pipeline.sweep()
        if pipeline.assemble(document_id):
            return failed
    raise AssertionError("the document hangs on its poison page")


def pages_of(pipeline: Pipeline, document_id: UUID) -> list[dict[str, Any]]:
    pages: list[dict[str, Any]] = pipeline.result(document_id)["pages"]
    for page in pages:
        page.pop("seconds", None)
    return pages


def undisturbed_pages(pipeline: Pipeline) -> list[dict[str, Any]]:
    pipeline.engine = NumberingEngine()
    document_id = pipeline.accept(FIVE_PAGES)
    pipeline.finish(document_id)
    return pages_of(pipeline, document_id)


@pytest.mark.parametrize("chunk_pages", [1, 2, 16])
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ProcessDeathError(), "worker_lost"),
        (OutOfMemoryError("x"), "gpu_out_of_memory"),
        (InferenceError("x"), "page_crashed"),
        (RenderChildError("x"), "page_crashed"),
        (MemoryError(), "page_crashed"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_a_poison_page_costs_only_itself(
    pipeline: Pipeline, chunk_pages: int, error: BaseException, code: str
) -> None:
    undisturbed = undisturbed_pages(pipeline)
    pipeline.chunk_pages = chunk_pages
    pipeline.engine = PoisonedEngine(POISON, raises(error))
    document_id = pipeline.accept(FIVE_PAGES)

    failed = work_off(pipeline, document_id)

    pages = pages_of(pipeline, document_id)
    assert pipeline.document(document_id).state == DocumentState.PARTLY_SUCCEEDED
    assert pages.pop(POISON)["error"]["code"] == code
    del undisturbed[POISON]
    assert pages == undisturbed
    # The chunk, and the page alone.
    assert failed == 2 * pipeline.rules.max_attempts


def test_a_document_of_one_poison_page_has_failed(pipeline: Pipeline) -> None:
    pipeline.engine = PoisonedEngine(0, raises(ProcessDeathError()))
    document_id = pipeline.accept(tiff_of(1))

    work_off(pipeline, document_id)

    document = pipeline.document(document_id)
    assert (document.state, document.error_code) == (DocumentState.FAILED, "worker_lost")


def test_a_page_that_is_read_when_it_is_alone_is_whole(pipeline: Pipeline) -> None:
    undisturbed = undisturbed_pages(pipeline)
    pipeline.chunk_pages = 16
    deaths = iter(range(pipeline.rules.max_attempts))

    def die_with_the_chunk(_page: PageImage) -> None:
        if next(deaths, None) is not None:
            raise ProcessDeathError

    pipeline.engine = PoisonedEngine(POISON, die_with_the_chunk)
    document_id = pipeline.accept(FIVE_PAGES)

    work_off(pipeline, document_id)

    assert pipeline.document(document_id).state == DocumentState.SUCCEEDED
    assert pages_of(pipeline, document_id) == undisturbed


def test_a_spent_chunk_is_isolated_once_its_lease_has_ended(pipeline: Pipeline) -> None:
    pipeline.rules = replace(pipeline.rules, max_attempts=1)
    pipeline.engine = PoisonedEngine(0, raises(ProcessDeathError()))
    document_id = pipeline.accept(tiff_of(2))
    pipeline.split(document_id)
    recognize_all(pipeline, document_id)

    while_leased = pipeline.sweep()
    pipeline.expire_leases()
    after_it = pipeline.sweep()

    assert (while_leased.isolated, while_leased.given_up) == (0, 0)
    assert (after_it.isolated, after_it.given_up) == (1, 0)


def test_a_process_that_is_ended_for_a_page_that_takes_too_long_is_a_page_timeout(
    pipeline: Pipeline,
) -> None:
    pipeline.rules = replace(pipeline.rules, max_attempts=1, lease_s=0.5, overtime_s=0.1)
    is_ended = threading.Event()

    def hang(_page: PageImage) -> None:
        # Until the lease was renewed; then the process is ended.
        for _ in range(200):
            with pipeline.database.transaction() as session:
                if session.query(Chunk).filter(Chunk.error_code == "page_timeout").count():
                    break
            is_ended.wait(0.05)
        raise ProcessDeathError

    pipeline.engine = PoisonedEngine(0, hang)
    document_id = pipeline.accept(tiff_of(1))

    work_off(pipeline, document_id)

    document = pipeline.document(document_id)
    assert (document.state, document.error_code) == (DocumentState.FAILED, "page_timeout")


@pytest.mark.parametrize("is_pdf", [False, True])
def test_the_last_try_is_at_half_the_resolution_and_the_result_says_so(
    pipeline: Pipeline, *, is_pdf: bool
) -> None:
    body, media_type = (pdf_of(3), "application/pdf") if is_pdf else (tiff_of(3), "image/tiff")
    pipeline.chunk_pages = 16
    document_id = pipeline.accept(body, media_type=media_type)
    pipeline.finish(document_id)
    whole = pages_of(pipeline, document_id)
    size = whole[1]["width_px"], whole[1]["height_px"]

    def refuse_large_pages(page: PageImage) -> None:
        if (page.width_px, page.height_px) == size:
            raise OutOfMemoryError("x")

    pipeline.engine = PoisonedEngine(1, refuse_large_pages)
    document_id = pipeline.accept(body, media_type=media_type)

    work_off(pipeline, document_id)

    require_valid(pipeline.result(document_id))
    pages = pages_of(pipeline, document_id)
    assert pipeline.document(document_id).state == DocumentState.SUCCEEDED
    reduced = pages.pop(1)
    assert reduced["warnings"] == ["reduced_resolution"]
    assert (reduced["width_px"], reduced["height_px"]) == (size[0] // 2, size[1] // 2)
    assert reduced["dpi"] == whole[1]["dpi"] / 2
    del whole[1]
    assert pages == whole
