"""The request that names an object of a bucket instead of bringing a file."""

from typing import Annotated

from fastapi import Request
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)
from pydantic_core import from_json

from api.accept_document import Acceptance, page_limits_of
from api.accept_source import SourceRules, SourceSubmission, accept_source
from api.errors import ApiError, InvalidFieldsError
from api.ledger import TenantLedger
from api.services import Services
from api.upload_form import UploadFields, problems_of, resolve_options, timely
from db.ids import new_id
from storage.source_object import MAX_KEY_BYTES, SourceAddress, is_usable_name

MAX_BODY_BYTES = 128 * 2**10


def require_usable(name: str) -> str:
    """Return the name of a bucket, of an object, or of a version of one.

    Raises:
        ValueError: it can be none.
    """
    if not is_usable_name(name):
        raise ValueError("has characters, or a length, that no object of S3 has")
    return name


# What a schema can say of it; of bytes it cannot speak.
_Name = Annotated[
    str,
    StringConstraints(min_length=1, max_length=MAX_KEY_BYTES, pattern=r"^[^\x00]+$"),
    AfterValidator(require_usable),
]


class ObjectName(BaseModel):
    """An object in a bucket that the operator allows."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    bucket: _Name
    key: _Name
    version_id: _Name | None = Field(default=None, description="None: the latest.")


class SourceReference(UploadFields):
    """A document whose bytes lie in a bucket."""

    source: ObjectName


def is_reference(request: Request) -> bool:
    """Say whether a request names an object, and brings no file."""
    content_type = request.headers.get("Content-Type", "")
    return content_type.partition(";")[0].strip().lower() == "application/json"


async def receive_reference(
    request: Request, ledger: TenantLedger, services: Services, idempotency_key: str | None
) -> Acceptance:
    """Read a request that names an object, and accept its document.

    Errors of ``accept_source`` pass through.

    Raises:
        ApiError: the body is too large, too slow, or not JSON.
        InvalidFieldsError: a field is missing, unknown or wrong.
    """
    settings = services.settings
    body = bytearray()
    async for block in timely(
        request.stream(),
        idle_s=settings.api_upload_idle_s,
        min_bytes_per_s=settings.api_upload_min_bytes_per_s,
    ):
        body += block
        if len(body) > MAX_BODY_BYTES:
            raise ApiError("body_too_large")
    reference = _parse(bytes(body))
    named = reference.source
    return await services.in_accepting_thread(
        accept_source,
        SourceSubmission(
            new_id(),
            SourceAddress(named.bucket, named.key, named.version_id),
            reference,
            idempotency_key,
        ),
        ledger=ledger,
        store=services.store,
        rules=SourceRules(settings.api_sources, settings.max_file_bytes, page_limits_of(settings)),
        messages=services.messages,
        admission=services.admission,
        dispatch_after_s=settings.dispatch_grace_s,
    )


def _parse(body: bytes) -> SourceReference:
    try:
        sent = from_json(body)
    except ValueError as error:
        raise ApiError("malformed_body") from error
    try:
        reference = SourceReference.model_validate(sent)
    except ValidationError as error:
        raise InvalidFieldsError(*problems_of(error)) from error
    resolve_options({}, reference.options)
    return reference
