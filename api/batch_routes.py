"""Batches: documents that were submitted together."""

import re
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema, field_validator

from api.document_routes import MAX_DOCUMENTS, IdCursor, list_of
from api.ledger import Ledger
from api.problems import declared
from api.upload_form import resolve_options
from api.views import BatchView, DocumentPage, batch_view
from db.ids import new_id
from db.models import Batch
from db.states import DocumentState

_CREATED = 201
_ONE_LINE = r"^[^\u0000-\u001f\u007f-\u009f\u2028\u2029]*$"

router = APIRouter(tags=["batches"])


class NewBatch(BaseModel):
    """A batch to be created."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(
        min_length=1,
        max_length=200,
        description="For people; need not be unique.",
        json_schema_extra={"pattern": _ONE_LINE},
    )
    options: Annotated[
        dict[str, Any], WithJsonSchema({"allOf": [{"$ref": "#/components/schemas/OcrOptions"}]})
    ] = Field(
        default_factory=dict,
        description="Options (see OcrOptions) of those documents of the batch that do not say "
        "otherwise.",
    )

    @field_validator("name")
    @classmethod
    def _is_one_line(cls, name: str) -> str:
        if not re.fullmatch(_ONE_LINE, name):
            raise ValueError("must not have control characters or line breaks")
        return name


@router.post(
    "/v1/batches",
    status_code=_CREATED,
    responses=declared(
        "malformed_body",
        "unauthenticated",
        "body_too_large",
        "invalid_request",
        "database_unavailable",
    ),
)
def create_batch(new: NewBatch, ledger: Ledger, response: Response) -> BatchView:
    """Create a batch; documents name it as their `batch_id`."""
    resolve_options({}, new.options)
    batch = Batch(id=new_id(), tenant=ledger.tenant, name=new.name, options=new.options)
    ledger.add_batch(batch)
    view = batch_view(*ledger.batch(batch.id))
    response.headers["Location"] = view.links.self
    return view


@router.get(
    "/v1/batches/{batch_id}",
    responses=declared("unauthenticated", "not_found", "invalid_request", "database_unavailable"),
)
def read_batch(batch_id: UUID, ledger: Ledger) -> BatchView:
    """Say where a batch and its documents stand."""
    return batch_view(*ledger.batch(batch_id))


@router.post(
    "/v1/batches/{batch_id}/cancel",
    responses=declared("unauthenticated", "not_found", "invalid_request", "database_unavailable"),
)
def cancel_batch(batch_id: UUID, ledger: Ledger) -> BatchView:
    """Cancel all documents of a batch that are not final; it takes no further ones.

    Sent again, it is answered the same. Of a large batch some documents may still be open in the
    answer: they end one after the other, within minutes.
    """
    ledger.cancel_batch(batch_id)
    return batch_view(*ledger.batch(batch_id))


@router.get(
    "/v1/batches/{batch_id}/documents",
    responses=declared("unauthenticated", "not_found", "invalid_request", "database_unavailable"),
)
def list_batch_documents(
    batch_id: UUID,
    ledger: Ledger,
    limit: Annotated[int, Query(ge=1, le=MAX_DOCUMENTS)] = 20,
    cursor: IdCursor = None,
    state: Annotated[DocumentState | None, Query(description="Only those in this state.")] = None,
) -> DocumentPage:
    """List the documents of a batch, newest first."""
    ledger.batch(batch_id)
    return list_of(ledger, limit=limit, cursor=cursor, batch_id=batch_id, state=state)
