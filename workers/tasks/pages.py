"""Tasks about pages."""

from dataclasses import asdict
from typing import Any
from uuid import UUID

from celery import Task

from workers.app import work_task
from workers.celeryconfig import DRAW_TASK, RECOGNIZE_TASK
from workers.draw_page import draw_page
from workers.recognize_chunk import recognize_chunk
from workers.runtime import current_runtime


@work_task(name=RECOGNIZE_TASK)
def recognize_chunk_task(_task: Task[..., Any], chunk_id: str) -> dict[str, Any]:
    """Recognize one chunk of a document."""
    runtime = current_runtime()
    outcome = recognize_chunk(
        UUID(chunk_id),
        transaction=runtime.database.transaction,
        store=runtime.store,
        source_file=runtime.source_file,
        renderer=runtime.renderer,
        engine=runtime.engine_for_reading(),
        rules=runtime.rules,
        cache=runtime.page_cache,
    )
    return {"chunk_id": chunk_id, **asdict(outcome)}


@work_task(name=DRAW_TASK, is_owed=False)
def draw_page_task(_task: Task[..., Any], document_id: str, page_index: int) -> dict[str, Any]:
    """Draw the image of one page, for whoever asked to see it."""
    runtime = current_runtime()
    is_drawn = draw_page(
        UUID(document_id),
        page_index,
        transaction=runtime.database.transaction,
        store=runtime.store,
        source_file=runtime.source_file,
        renderer=runtime.renderer,
    )
    return {"document_id": document_id, "page_index": page_index, "is_drawn": is_drawn}
