"""Tasks about pages."""

from dataclasses import asdict
from typing import Any
from uuid import UUID

from celery import Task

from workers.app import work_task
from workers.celeryconfig import RECOGNIZE_TASK
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
        engine=runtime.engine,
        rules=runtime.rules,
    )
    return {"chunk_id": chunk_id, **asdict(outcome)}
