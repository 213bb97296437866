"""The report of a batch: every document of it, one a line, however many there are."""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Annotated, Literal
from uuid import UUID

import anyio.to_thread
from fastapi import APIRouter, Query, Response
from starlette.responses import StreamingResponse

from api.csv_rows import csv_lines
from api.errors import sentence
from api.filenames import content_disposition, safe_filename
from api.ledger import Ledger, TenantLedger
from api.problems import declared
from db.batch_report import ReportedDocument

# Read in one statement, and kept in memory while a client takes them.
DOCUMENTS_PER_PART = 500

ReportFormat = Literal["csv", "ndjson"]
COLUMNS = (
    "document_id",
    "external_id",
    "filename",
    "state",
    "pages",
    "pages_ok",
    "pages_failed",
    "error_code",
    "seconds",
    "result",
    "size_bytes",
    "sha256",
    "source",
    "cached",
    "error_message",
)
_MEDIA_TYPES: dict[ReportFormat, str] = {
    "csv": "text/csv; charset=utf-8",
    "ndjson": "application/x-ndjson",
}
_REPORT_CONTENT = {
    "text/csv": {"schema": {"type": "string"}},
    "application/x-ndjson": {"schema": {"type": "string"}},
}

router = APIRouter(tags=["batches"])


@router.get(
    "/v1/batches/{batch_id}/report",
    response_class=StreamingResponse,
    responses={
        200: {"description": "The report, whole.", "content": _REPORT_CONTENT},
        **declared("unauthenticated", "not_found", "invalid_request", "database_unavailable"),
    },
)
async def read_report(
    batch_id: UUID,
    ledger: Ledger,
    format_: Annotated[
        ReportFormat, Query(alias="format", description="`ndjson` has the metadata too.")
    ] = "csv",
) -> Response:
    """Say of each document of a batch where it stands, oldest first.

    Documents that arrive while it is read may be in it or not; each is in it once.
    """
    batch, _ = await anyio.to_thread.run_sync(ledger.batch, batch_id)
    # Read before the answer begins, so that what fails at once is an error and no broken answer.
    first = await _read(ledger, batch_id, after=None)
    headers = {
        "Cache-Control": "private, no-cache",
        "Content-Disposition": content_disposition(
            f"{safe_filename(batch.name)}.", extension=f".{format_}"
        ),
    }
    return StreamingResponse(
        _parts(ledger, batch_id, first, _WRITERS[format_]),
        headers=headers,
        media_type=_MEDIA_TYPES[format_],
    )


async def _parts(
    ledger: TenantLedger,
    batch_id: UUID,
    first: Sequence[ReportedDocument],
    write: Callable[[Sequence[ReportedDocument]], str],
) -> AsyncIterator[bytes]:
    if write is _csv:
        yield csv_lines([COLUMNS]).encode()
    found = first
    while found:
        yield write(found).encode()
        if len(found) < DOCUMENTS_PER_PART:
            return
        found = await _read(ledger, batch_id, after=found[-1].id)


async def _read(
    ledger: TenantLedger, batch_id: UUID, *, after: UUID | None
) -> Sequence[ReportedDocument]:
    return await anyio.to_thread.run_sync(
        lambda: ledger.report(batch_id, after=after, limit=DOCUMENTS_PER_PART)
    )


def _csv(found: Sequence[ReportedDocument]) -> str:
    return csv_lines(list(_record(document).values()) for document in found)


def _ndjson(found: Sequence[ReportedDocument]) -> str:
    return "".join(
        json.dumps({**_record(document), "metadata": document.metadata}) + "\n"
        for document in found
    )


def _record(document: ReportedDocument) -> dict[str, object]:
    """Return what is reported of a document, in the order of the columns."""
    values = (
        str(document.id),
        document.external_id,
        document.filename,
        document.state,
        document.pages,
        document.pages_ok,
        document.pages_failed,
        document.error_code,
        document.seconds,
        f"/v1/documents/{document.id}/result?format=json" if document.has_result else None,
        document.size_bytes,
        document.sha256,
        None if document.bucket is None else f"s3://{document.bucket}/{document.key}",
        document.is_cached,
        document.error_detail or (document.error_code and sentence(document.error_code)),
    )
    return dict(zip(COLUMNS, values, strict=True))


_WRITERS: dict[ReportFormat, Callable[[Sequence[ReportedDocument]], str]] = {
    "csv": _csv,
    "ndjson": _ndjson,
}
