"""Tasks about a whole document."""

from typing import Any
from uuid import UUID

from celery import Task

from workers.app import work_task
from workers.assemble_document import assemble_document
from workers.celeryconfig import ASSEMBLE_TASK, EXPORT_TASK, SPLIT_TASK
from workers.export_document import export_document
from workers.runtime import current_runtime
from workers.split_document import split_document


@work_task(name=SPLIT_TASK)
def split_task(_task: Task[..., Any], document_id: str) -> dict[str, Any]:
    """Split a document into chunks."""
    runtime = current_runtime()
    pages = split_document(
        UUID(document_id),
        transaction=runtime.database.transaction,
        opener=runtime.source_opener,
        cache=runtime.content_cache,
        chunk_pages=runtime.chunk_pages,
        rules=runtime.rules,
    )
    return {"document_id": document_id, "pages": pages}


@work_task(name=ASSEMBLE_TASK)
def assemble_task(_task: Task[..., Any], document_id: str, generation: int) -> dict[str, Any]:
    """Assemble the pages of a document into its result."""
    runtime = current_runtime()
    state = assemble_document(
        UUID(document_id),
        generation,
        transaction=runtime.database.transaction,
        store=runtime.store,
        rules=runtime.rules,
    )
    return {"document_id": document_id, "state": state}


@work_task(name=EXPORT_TASK)
def export_task(_task: Task[..., Any], export_id: str) -> dict[str, Any]:
    """Make another form of a document's result."""
    runtime = current_runtime()
    size_bytes = export_document(
        UUID(export_id),
        transaction=runtime.database.transaction,
        store=runtime.store,
        source_file=runtime.source_file,
        renderer=runtime.renderer,
        rules=runtime.rules,
    )
    return {"export_id": export_id, "size_bytes": size_bytes}
