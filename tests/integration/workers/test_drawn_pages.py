"""Page images: drawn on demand, in the frame of the result, and gone with their document."""

import io
import time
from uuid import UUID

from PIL import Image

from db import deleting
from storage import keys
from storage.errors import StorageUnavailableError
from storage.memory import InMemoryObjectStore
from tests.support.engines import FailingEngine
from tests.support.pipeline import Pipeline, tiff_of
from tests.support.rows import TENANT
from tests.support.slow_renderer import SlowOnce
from workers import dispatch
from workers.draw_page import TRY_AGAIN_S, draw_page
from workers.ocr.errors import InferenceError
from workers.page_renderer import PageRenderer, RenderLimits


def draw(
    pipeline: Pipeline,
    document_id: UUID,
    page_index: int,
    *,
    store: InMemoryObjectStore | None = None,
    renderer: PageRenderer | None = None,
) -> bool:
    return draw_page(
        document_id,
        page_index,
        transaction=pipeline.database.transaction,
        store=store or pipeline.store,
        source_file=pipeline.source_file,
        renderer=renderer or pipeline.renderer,
    )


def image_keys(store: InMemoryObjectStore, document_id: UUID) -> list[str]:
    prefix = f"{keys.document_prefix(document_id)}1/images/"
    return [each.key.removeprefix(prefix) for each in store.list(prefix)]


def reason_of(pipeline: Pipeline, document_id: UUID) -> str:
    """Return why the first page has no image, which has to count for a while, and not for ever."""
    told = pipeline.store.get(keys.page_image_error_key(document_id, 1, 0)).decode()
    code, until_s = told.split(" ")
    assert 0 < float(until_s) - time.time() <= TRY_AGAIN_S + 1
    return code


class ChangingStore(InMemoryObjectStore):
    """Holds what another one does, and deletes the document when its image is put."""

    def __init__(self, pipeline: Pipeline, document_id: UUID) -> None:
        super().__init__()
        for each in pipeline.store.list(keys.document_prefix(document_id)):
            self.put(each.key, pipeline.store.get(each.key), media_type="")
        self._pipeline, self._document_id = pipeline, document_id

    def put(self, key: str, body: bytes, *, media_type: str) -> None:
        super().put(key, body, media_type=media_type)
        if "/images/" in key:
            with self._pipeline.database.transaction() as session:
                deleting.mark(session, self._document_id, tenant=TENANT, writers_s=1)


class FailingStore(InMemoryObjectStore):
    def put(self, key: str, body: bytes, *, media_type: str) -> None:  # noqa: ARG002
        raise StorageUnavailableError("away")


def test_the_image_of_a_page_is_as_large_as_its_result_says(pipeline: Pipeline) -> None:
    document_id = pipeline.accept(tiff_of(3))
    pipeline.finish(document_id)

    assert draw(pipeline, document_id, 1)

    assert image_keys(pipeline.store, document_id) == ["1.jpg"]
    body = pipeline.store.get(keys.page_image_key(document_id, 1, 1))
    page = pipeline.result(document_id)["pages"][1]
    with Image.open(io.BytesIO(body)) as image:
        assert image.size == (page["width_px"], page["height_px"])


def test_whoever_drew_an_image_makes_room_for_the_next(pipeline: Pipeline) -> None:
    document_id = pipeline.accept(tiff_of(2))
    pipeline.finish(document_id)
    answers = [
        dispatch.send_drawing(document_id, index, tenant=TENANT, limit=16) for index in (0, 1)
    ]

    draw(pipeline, document_id, 0)

    assert answers == [True, False]
    assert dispatch.send_drawing(document_id, 1, tenant=TENANT, limit=16)


def test_a_page_that_nobody_could_read_is_drawn_all_the_same(pipeline: Pipeline) -> None:
    pipeline.engine = FailingEngine(InferenceError("no"), after_pages=0)
    document_id = pipeline.accept(tiff_of(1))
    pipeline.split(document_id)
    with pipeline.database.transaction() as session:
        session.connection().exec_driver_sql("UPDATE pages SET state = 'failed'")

    assert draw(pipeline, document_id, 0)


def test_a_page_that_is_not_read_yet_has_no_image(pipeline: Pipeline) -> None:
    document_id = pipeline.accept(tiff_of(1))
    pipeline.split(document_id)

    assert not draw(pipeline, document_id, 0)
    assert not draw(pipeline, document_id, 7)
    assert image_keys(pipeline.store, document_id) == []


def test_a_page_that_cannot_be_drawn_says_why(pipeline: Pipeline) -> None:
    document_id = pipeline.accept(tiff_of(1))
    pipeline.finish(document_id)

    with PageRenderer(RenderLimits(max_pixels=1_000)) as small:
        assert not draw(pipeline, document_id, 0, renderer=small)

    assert reason_of(pipeline, document_id) == "page_too_large"


def test_a_page_that_took_too_long_once_is_drawn_when_it_is_asked_for_again(
    pipeline: Pipeline,
) -> None:
    document_id = pipeline.accept(tiff_of(1))
    pipeline.finish(document_id)

    with SlowOnce(RenderLimits()) as slow:
        first = draw(pipeline, document_id, 0, renderer=slow)
        reason = reason_of(pipeline, document_id)
        second = draw(pipeline, document_id, 0, renderer=slow)

    assert (first, reason, second) == (False, "page_timeout", True)
    assert image_keys(pipeline.store, document_id) == ["0.error", "0.jpg"]


def test_nothing_stays_of_a_document_that_is_deleted_meanwhile(pipeline: Pipeline) -> None:
    document_id = pipeline.accept(tiff_of(1))
    pipeline.finish(document_id)
    store = ChangingStore(pipeline, document_id)

    assert not draw(pipeline, document_id, 0, store=store)

    assert image_keys(store, document_id) == []


def test_no_reason_stays_of_a_document_that_is_deleted_meanwhile(pipeline: Pipeline) -> None:
    document_id = pipeline.accept(tiff_of(1))
    pipeline.finish(document_id)
    store = ChangingStore(pipeline, document_id)

    with PageRenderer(RenderLimits(max_pixels=1_000)) as small:
        assert not draw(pipeline, document_id, 0, store=store, renderer=small)

    assert image_keys(store, document_id) == []


def test_a_store_that_is_away_costs_the_image_and_no_more(pipeline: Pipeline) -> None:
    document_id = pipeline.accept(tiff_of(1))
    pipeline.finish(document_id)

    assert not draw(pipeline, document_id, 0, store=FailingStore())
    assert draw(pipeline, document_id, 0)
