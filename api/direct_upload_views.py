"""What the API takes and answers about files that clients put into storage themselves."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from api.errors import sentence
from api.filenames import MAX_LENGTH
from api.part_plan import PartPlan
from api.upload_form import DocumentFields, WithPassword
from api.views import ErrorView
from db.intake_models import DirectUpload
from db.models import Document
from db.states import DirectUploadState
from storage.part_uploads import MAX_PARTS

_MAX_OBJECT_BYTES = 5 * 2**40  # of S3


def _require_number(sent: object) -> object:
    if isinstance(sent, bool | str):
        raise ValueError("must be a number")  # noqa: TRY004 - what pydantic reports
    return sent


# As JSON Schema has it: 7.0 is one, and "7" and true are none, which pydantic would take.
WholeNumber = Annotated[int, BeforeValidator(_require_number)]


class NewUpload(DocumentFields):
    """A file that the client is about to put into storage, and what is to become of it."""

    filename: str = Field(
        min_length=1, max_length=MAX_LENGTH, description="Its name; says nothing about its type."
    )
    size_bytes: WholeNumber = Field(ge=1, le=_MAX_OBJECT_BYTES, description="Of the file, exactly.")
    sha256: str | None = Field(
        default=None,
        pattern=r"^[0-9a-f]{64}$",
        description="Of the file, in lower-case hexadecimal. If it is given, other bytes are "
        "refused when the upload is completed.",
    )
    options: Annotated[
        dict[str, Any], WithJsonSchema({"allOf": [{"$ref": "#/components/schemas/OcrOptions"}]})
    ] = Field(
        default_factory=dict,
        description="Options that are left out are the batch's, or the defaults.",
    )


class SentPart(BaseModel):
    """A part as the client has sent it."""

    model_config = ConfigDict(extra="forbid")

    part_number: WholeNumber = Field(ge=1, le=MAX_PARTS)
    etag: str = Field(
        min_length=1, max_length=200, description="The `ETag` that the storage answered it with."
    )


class CompletedUpload(WithPassword):
    """What goes with a file that is all there; nothing has to."""

    model_config = ConfigDict(extra="forbid")

    parts: list[SentPart] = Field(
        default_factory=list,
        max_length=MAX_PARTS,
        description="Parts that must be in storage as they were sent.",
    )


class PartView(BaseModel):
    """One part of a file, and where to send it."""

    part_number: int = Field(description="Counted from 1.")
    size_bytes: int
    is_stored: bool = Field(
        description="Whether a part of this size is in storage; sent again, it is replaced."
    )
    url: str = Field(
        description="`PUT` exactly `size_bytes` bytes of the file to it, without a key. Whoever "
        "knows the address can, so keep it to yourself."
    )
    url_expires_at: datetime


class PartPage(BaseModel):
    """Some parts of a file, in order."""

    parts: list[PartView]
    next_part: int | None = Field(description="Send it as `first` for more; null at the end.")


class UploadLinks(BaseModel):
    """Addresses that belong to an upload, relative to the API's own."""

    self: str
    parts: str
    complete: str
    document: str | None = Field(description="Null until the upload is completed.")


class UploadView(BaseModel):
    """A file that the client puts into storage itself."""

    id: UUID = Field(description="Of the upload, and of the document that it becomes.")
    state: Literal["open", "checking", "completed", "failed"] = Field(
        description="`checking`: its bytes are being read. `completed`: it is a document. "
        "`failed`: `error` says why it is none; what was sent is removed."
    )
    filename: str = Field(description="The name of the file, without unsafe characters.")
    size_bytes: int
    sha256: str | None = Field(description="As it was announced; of a document, as it is.")
    part_bytes: int | None = Field(
        description="Bytes of every part but the last; null once it is completed."
    )
    part_count: int | None = Field(description="Null once it is completed.")
    created_at: datetime
    expires_at: datetime | None = Field(
        description="Until when it has to be completed; null once it is."
    )
    error: ErrorView | None
    links: UploadLinks


class UploadWithParts(UploadView):
    """An upload with the addresses of its first parts."""

    parts: list[PartView]
    next_part: int | None = Field(description="The first part that is not in `parts`, if any.")


def upload_view(upload: DirectUpload) -> UploadView:
    """Return what the API tells about an upload that is no document."""
    code = upload.error_code
    return UploadView(
        id=upload.id,
        state=_state(upload),
        filename=upload.filename,
        size_bytes=upload.size_bytes,
        sha256=upload.sha256,
        part_bytes=upload.part_bytes,
        part_count=plan_of(upload).count,
        created_at=upload.created_at,
        expires_at=upload.expires_at,
        error=None if code is None else ErrorView(code=code, message=sentence(code)),
        links=_links(upload.id, document=None),
    )


def completed_view(document: Document) -> UploadView:
    """Return what the API tells about an upload that has become a document."""
    return UploadView(
        id=document.id,
        state="completed",
        filename=document.filename,
        size_bytes=document.size_bytes,
        sha256=document.sha256,
        part_bytes=None,
        part_count=None,
        created_at=document.created_at,
        expires_at=None,
        error=None,
        links=_links(document.id, document=f"/v1/documents/{document.id}"),
    )


def with_parts(
    view: UploadView, parts: Sequence[PartView], next_part: int | None
) -> UploadWithParts:
    """Return an upload together with parts of it."""
    return UploadWithParts(**dict(view), parts=list(parts), next_part=next_part)


def plan_of(upload: DirectUpload) -> PartPlan:
    """Return the parts of an upload, as they were planned when it was announced."""
    return PartPlan(upload.size_bytes, upload.part_bytes)


def _state(upload: DirectUpload) -> Literal["open", "checking", "failed"]:
    if upload.state == DirectUploadState.FAILED:
        return "failed"
    is_checked = upload.checked_until is not None and upload.checked_until > datetime.now(UTC)
    return "checking" if is_checked else "open"


def _links(upload_id: UUID, *, document: str | None) -> UploadLinks:
    address = f"/v1/uploads/{upload_id}"
    return UploadLinks(
        self=address,
        parts=f"{address}/parts",
        complete=f"{address}/complete",
        document=document,
    )
