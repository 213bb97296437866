"""Draw the image of one page, for a reader who wants to see it beside its text.

It is made when somebody asks for it: nobody looks at most pages of an archive.
"""

import gzip
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import UUID

import orjson
import structlog

from db import document_sources, documents, pages
from db.document_sources import ReadableBytes
from db.engine import Transaction
from db.errors import DatabaseError, RowNotFoundError
from db.states import DocumentState, PageState
from storage import keys
from storage.errors import StorageError
from storage.object_store import ObjectStore
from workers import dispatch
from workers.ocr import encoded_page
from workers.ocr.encoded_page import PageFrame
from workers.ocr.errors import DocumentError, PageError, RenderChildError
from workers.ocr.options import OcrOptions
from workers.page_renderer import PageRenderer
from workers.source_file import SourceFile

log = structlog.get_logger(__name__)

# A page that cannot be drawn is not tried before: the machine may only have been slow, or the
# kernel short of memory; but a page may also cost the time limit whenever somebody asks.
TRY_AGAIN_S: Final = 600


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A page of a document, and where its results are; they are None of a page that failed."""

    document_id: UUID
    generation: int
    page_index: int
    source: ReadableBytes
    dpi: float
    result_key: str | None
    result_start: int
    result_stop: int


def draw_page(
    document_id: UUID,
    page_index: int,
    *,
    transaction: Transaction,
    store: ObjectStore,
    source_file: SourceFile,
    renderer: PageRenderer,
) -> bool:
    """Write the image of a page beside its results, or why there cannot be one.

    Returns:
        Whether there is an image now. Whoever still wants it asks again: nothing is owed here, so
        a failure that may pass is logged and no more.
    """
    structlog.contextvars.bind_contextvars(document_id=str(document_id), page_index=page_index)
    try:
        return _draw(document_id, page_index, transaction, store, source_file, renderer)
    except (DatabaseError, StorageError, RenderChildError):
        log.warning("page image not made", exc_info=True)
        return False
    finally:
        dispatch.end_drawing(document_id, page_index)


def _draw(
    document_id: UUID,
    page_index: int,
    transaction: Transaction,
    store: ObjectStore,
    source_file: SourceFile,
    renderer: PageRenderer,
) -> bool:
    """Write an image, or why there cannot be one; say whether it was an image.

    Raises:
        DatabaseError: the page cannot be looked up.
        StorageError: something cannot be read or written.
        RenderChildError: there is no process to draw it.
    """
    wanted = _read(document_id, page_index, transaction)
    if wanted is None:
        return False
    try:
        source = wanted.source
        path = source_file.fetch(document_id, sha256=source.sha256, key=source.key)
        body = _drawn(wanted, store=store, path=path, renderer=renderer)
    except (DocumentError, PageError) as error:
        is_drawn = False
        written_key = keys.page_image_error_key(document_id, wanted.generation, page_index)
        reason = f"{error.code} {time.time() + TRY_AGAIN_S:.0f}"
        store.put(written_key, reason.encode(), media_type="text/plain; charset=utf-8")
    else:
        is_drawn = True
        written_key = keys.page_image_key(document_id, wanted.generation, page_index)
        store.put(written_key, body, media_type=encoded_page.MEDIA_TYPE)
    # Of a document that was deleted meanwhile nothing may stay; whoever deletes it later finds the
    # object himself.
    if _read(document_id, page_index, transaction) is None:
        store.delete([written_key])
        return False
    return is_drawn


def _read(document_id: UUID, page_index: int, transaction: Transaction) -> _Wanted | None:
    """Return where a page stands; None: there is no such page any more, or nothing of it yet."""
    with transaction() as session:
        try:
            document = documents.get(session, document_id)
        except RowNotFoundError:
            return None
        found = pages.list_page(session, document_id, after_index=page_index - 1, limit=1)
        page = next(iter(found), None)
        if document.state == DocumentState.DELETING or page is None:
            return None
        if page.page_index != page_index or page.state == PageState.QUEUED:
            return None
        return _Wanted(
            document_id,
            page.generation,
            page_index,
            document_sources.readable(document),
            OcrOptions.from_row(document.options).dpi,
            page.result_key if page.state == PageState.OK else None,
            page.result_start or 0,
            page.result_stop or 0,
        )


def _drawn(wanted: _Wanted, *, path: Path, store: ObjectStore, renderer: PageRenderer) -> bytes:
    """Return the page as a file.

    Raises:
        DocumentError: the file cannot be opened.
        PageError: the page cannot be drawn.
        StorageError: its result is not to be had.
        RenderChildError: there is no process to draw it.
    """
    dpi, frame = wanted.dpi, None
    if wanted.result_key is not None:
        start, stop = wanted.result_start, wanted.result_stop
        page = orjson.loads(
            gzip.decompress(store.read_range(wanted.result_key, start=start, stop=stop))
        )
        # A last try may have been read at less than the wanted resolution.
        dpi = page["dpi"]
        frame = PageFrame(page["width_px"], page["height_px"], page["rotation_deg"])
    renderer.open(path)
    try:
        rendered = renderer.render(wanted.page_index, dpi=dpi, mode="ocr")
        return encoded_page.encode_page(rendered.image, frame)
    finally:
        renderer.close()
