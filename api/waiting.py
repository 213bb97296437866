"""``Prefer: wait``: a request that is answered with the result, if that comes in time."""

import anyio
import anyio.to_thread
import structlog
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive

from api import etags
from api.errors import ApiError
from api.event_stream import cancel_when_gone, is_end
from api.ledger import DocumentEntry, TenantLedger
from api.object_streams import open_object, parts_of
from api.services import Services
from api.views import is_final
from db.errors import DatabaseError
from storage.errors import StorageError

log = structlog.get_logger(__name__)


async def entry_when_final(
    entry: DocumentEntry,
    receive: Receive,
    *,
    ledger: TenantLedger,
    services: Services,
    wait_s: float,
) -> DocumentEntry:
    """Wait for a document to end, and return it as it stands then; no errors.

    Nobody waits for a client that has gone, nor where the key has no place for a further stream.
    """
    if is_final(entry.document):
        return entry
    document_id = entry.document.id
    try:
        with services.stream_places.place(ledger.key_id):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(cancel_when_gone, receive, tasks.cancel_scope)
                with (
                    anyio.move_on_after(wait_s),
                    services.watch.watching(document_id, after=0) as watcher,
                ):
                    while (found := await watcher.next()) and not is_end(found):
                        pass
                tasks.cancel_scope.cancel()
        return await anyio.to_thread.run_sync(ledger.document, document_id)
    except (ApiError, DatabaseError):
        return entry  # it was accepted, whatever has become of it


async def result_response(
    entry: DocumentEntry, services: Services, headers: dict[str, str]
) -> Response | None:
    """Return the result of a document as an answer; None: it has none, or cannot be fetched now."""
    result_key = entry.document.result_key
    if result_key is None or not is_final(entry.document):
        return None
    try:
        size_bytes, parts = await services.in_storage_thread(
            open_object, services.store, result_key
        )
    except StorageError:
        log.warning("result not sent, the store is away or slow")
        return None
    return StreamingResponse(
        parts_of(parts, services),
        headers={
            **headers,
            "Content-Location": f"/v1/documents/{entry.document.id}/result?format=json",
            "Content-Length": str(size_bytes),
            "ETag": etags.etag_of(result_key, "json"),
        },
        media_type="application/json",
    )
