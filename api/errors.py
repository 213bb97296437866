"""What every error means to a user of the API: one table of codes, one of exceptions.

``workers.failures`` says what the codes of documents and pages mean; those of requests are
added here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from starlette.requests import ClientDisconnect

from api.cursor import CursorError
from api.multipart import MalformedFormError, NotAFormError
from db.errors import (
    DatabaseError,
    DatabaseUnavailableError,
    RowNotFoundError,
    TooManyListingsError,
)
from storage.errors import (
    SourceNotFoundError,
    SourceRefusedError,
    StorageError,
    StorageUnavailableError,
)
from workers.failures import ERROR_CODES
from workers.ocr.errors import DocumentError


@dataclass(frozen=True, slots=True)
class ErrorKind:
    """What a code means; ``detail`` names the remedy, ``status`` is None for no answer's."""

    status: int | None
    title: str
    detail: str
    retry_after_s: int | None = None


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """What is wrong with one field of a request; ``field`` is a dotted path."""

    field: str
    message: str


class ApiError(Exception):
    """An answer that is an error; ``code`` is one of ``ERRORS``.

    Args:
        code: what is wrong.
        detail: what to say instead of the sentence of the table; written for the user.
        fields: what is wrong with which field.
        headers: further headers of the answer.
        extra: further members of the problem document.
    """

    def __init__(
        self,
        code: str,
        *,
        detail: str | None = None,
        fields: Sequence[FieldProblem] = (),
        headers: Mapping[str, str] | None = None,
        extra: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(code)
        self.code = code
        self.detail = detail
        self.fields = fields
        self.headers = dict(headers or {})
        self.extra = dict(extra or {})


class InvalidFieldsError(ApiError):
    """A request whose fields are wrong; all problems that were found are listed."""

    def __init__(self, *problems: FieldProblem) -> None:
        super().__init__("invalid_request", fields=problems)


@dataclass(frozen=True, slots=True)
class Answer:
    """An error as it is told to the user."""

    code: str
    kind: ErrorKind
    detail: str
    fields: Sequence[FieldProblem] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, object] = field(default_factory=dict)


_OF_REQUESTS: Mapping[str, ErrorKind] = {
    "bad_request": ErrorKind(400, "Bad request", "The request is not understood."),
    "malformed_body": ErrorKind(
        400, "Malformed body", "The body is not what its Content-Type announces; send it whole."
    ),
    "unauthenticated": ErrorKind(
        401, "No valid API key", "Send a valid key as 'Authorization: Bearer pf_…'."
    ),
    "key_expired": ErrorKind(
        401,
        "Key expired",
        "The key has expired, or its secret was replaced by a newer one. Ask the operator for one "
        "that is valid.",
    ),
    "key_revoked": ErrorKind(
        401, "Key revoked", "The key was taken out of use. Ask the operator for another one."
    ),
    "missing_scope": ErrorKind(
        403,
        "Missing scope",
        "The key may not do this. Use one that has the scope which is named.",
    ),
    "source_not_allowed": ErrorKind(
        403,
        "Source not allowed",
        "Documents of this key may not come from there. Ask the operator to add bucket and prefix "
        "to PAGEFLEET_API_SOURCES.",
    ),
    "not_found": ErrorKind(404, "Not found", "There is nothing at this address for this key."),
    "method_not_allowed": ErrorKind(
        405, "Method not allowed", "The address takes the methods that the Allow header names."
    ),
    "request_timeout": ErrorKind(
        408,
        "Request timeout",
        "The body stopped arriving, or came too slowly; send the request again, whole.",
    ),
    "not_ready": ErrorKind(
        409, "Not ready", "The document is still being worked on; ask again later.", 2
    ),
    "no_result": ErrorKind(
        409, "No result", "The document ended without a result; its error says why."
    ),
    "export_failed": ErrorKind(
        409,
        "Export failed",
        "This form of the result could not be made; export_error says why. Asked for again after "
        "an hour it is tried again.",
    ),
    "too_many_exports": ErrorKind(
        409,
        "Too many exports",
        "The result has as many exports, of formats and choices of pages, as it may have; ask for "
        "larger ranges, or for all pages.",
    ),
    "no_image": ErrorKind(
        409,
        "No image",
        "The page cannot be drawn; its error says why. Asked for again after ten minutes it is "
        "tried again.",
    ),
    "already_final": ErrorKind(
        409, "Already final", "The document has ended already, so there is nothing to cancel."
    ),
    "nothing_to_retry": ErrorKind(
        409, "Nothing to retry", "All pages were read, so there is none to retry."
    ),
    "batch_closed": ErrorKind(
        409, "Batch is closed", "The batch takes no further documents; create another one."
    ),
    "upload_incomplete": ErrorKind(
        409,
        "Upload incomplete",
        "Parts are missing in storage, or are others than were announced; missing_parts names "
        "them. Send them, and complete the upload again.",
    ),
    "upload_checking": ErrorKind(
        409,
        "Upload is being checked",
        "The bytes of the upload are being read. Complete it again in a moment; the answer is its "
        "document.",
        2,
    ),
    "upload_ended": ErrorKind(
        409,
        "Upload has ended",
        "The upload is a document by now, or its bytes were refused, so that nothing is sent any "
        "more. Delete the document, or announce the file again.",
    ),
    "too_many_webhooks": ErrorKind(
        409, "Too many webhooks", "A tenant may have ten webhooks; remove one that is not needed."
    ),
    "webhook_disabled": ErrorKind(
        409, "Webhook is disabled", "Nothing is sent to this webhook; enable it first."
    ),
    "body_too_large": ErrorKind(
        413, "Body too large", "The request body is larger than this address takes."
    ),
    "invalid_request": ErrorKind(
        422, "Invalid request", "A field is missing or has a value that is not allowed."
    ),
    "idempotency_mismatch": ErrorKind(
        422,
        "Idempotency-Key used before",
        "This Idempotency-Key came with another request before; use a new key for a new request.",
    ),
    "upload_mismatch": ErrorKind(
        422,
        "Upload mismatch",
        "The bytes in storage are not those that were announced: their size or SHA-256 differs. "
        "Announce the file again, and send it again.",
    ),
    "invalid_event": ErrorKind(
        422,
        "Unreadable event",
        "The message has the form of no object store that is known; see docs/s3-events.md.",
    ),
    "bucket_not_found": ErrorKind(
        422, "Bucket not found", "There is no such bucket. Check its name, and send it again."
    ),
    "listing_refused": ErrorKind(
        422,
        "Listing refused",
        "The storage does not let Pagefleet list the bucket. Let its account list it "
        "(s3:ListBucket), then retry the batch.",
    ),
    "invalid_manifest": ErrorKind(
        422, "Invalid manifest", "The manifest cannot be understood; see docs/ingest.md."
    ),
    "unknown_batch": ErrorKind(
        404, "Unknown batch", "No batch has the batch_id that was sent; create the batch first."
    ),
    "client_closed_request": ErrorKind(
        499, "Client closed request", "The client went away before its request was complete."
    ),
    "too_many_uploads": ErrorKind(
        503,
        "Too many uploads",
        "As many uploads are running as fit, or as one tenant may have; try again in a moment.",
        5,
    ),
    "too_many_requests": ErrorKind(
        429, "Too many requests", "The key has asked too often; ask again a little later.", 1
    ),
    "too_many_dry_runs": ErrorKind(
        429,
        "Too many dry runs",
        "A dry run of this tenant is under way, or as many as fit are; send it again in a moment.",
        5,
    ),
    "too_many_listings": ErrorKind(
        429,
        "Too many listings",
        "The objects of as many batches of this tenant, or of additions to them, are being found"
        " as may be at a time; send it again when some are.",
        30,
    ),
    "too_many_open_exports": ErrorKind(
        429,
        "Too many open exports",
        "As many exports of this tenant wait as may; fetch some that were asked for before asking "
        "for more.",
        10,
    ),
    "too_many_images": ErrorKind(
        503,
        "Too many images",
        "As many page images are being drawn as fit, or as one tenant may have; ask again in a "
        "moment.",
        2,
    ),
    "too_many_streams": ErrorKind(
        429,
        "Too many streams",
        "As many streams of events are open as this key may have, or as fit; close one first.",
        5,
    ),
    "system_full": ErrorKind(
        503,
        "System full",
        "As many pages are waiting as the system takes; send the document again later. "
        "GET /v1/capacity says how much room there is.",
        60,
    ),
    "busy": ErrorKind(
        503, "Busy", "The request could not be answered in time; try again in a moment.", 5
    ),
    "not_serving": ErrorKind(503, "Not serving", "A server that the API needs fails.", 5),
}

_TITLES = {
    "unsupported_media_type": "Unsupported media type",
    "file_too_large": "File too large",
    "too_many_pages": "Too many pages",
    "exceeds_max_pages": "More pages than max_pages",
    "no_such_page": "No such page",
    "page_too_large": "Page too large",
    "encrypted": "Encrypted document",
    "damaged": "Damaged document",
    "empty": "Empty document",
    "page_timeout": "Page took too long",
    "page_crashed": "Page could not be rendered",
    "gpu_out_of_memory": "Out of memory",
    "model_missing": "Model missing",
    "storage_unavailable": "Storage unavailable",
    "database_unavailable": "Database unavailable",
    "source_not_found": "Source not found",
    "source_refused": "Source refused",
    "source_changed": "Source changed",
    "worker_lost": "Worker lost",
    "cancelled": "Cancelled",
    "quota_exceeded": "Quota exceeded",
    "internal": "Internal error",
}
_RETRY_AFTER_S = {"storage_unavailable": 5, "database_unavailable": 5, "quota_exceeded": 60}

# What can be wrong with a request, and what the table of the workers says of everything else.
ERRORS: Mapping[str, ErrorKind] = {
    **_OF_REQUESTS,
    **{
        code: ErrorKind(row.http_status, _TITLES[code], row.sentence, _RETRY_AFTER_S.get(code))
        for code, row in ERROR_CODES.items()
    },
}

# First match wins, so subclasses stand before their bases. DocumentError brings its own code.
_TRANSLATIONS: Sequence[tuple[type[Exception], str]] = (
    (StorageUnavailableError, "storage_unavailable"),
    (SourceNotFoundError, "source_not_found"),
    (SourceRefusedError, "source_refused"),
    (DatabaseUnavailableError, "database_unavailable"),
    (RowNotFoundError, "not_found"),
    (TooManyListingsError, "too_many_listings"),
    (MalformedFormError, "malformed_body"),
    (ClientDisconnect, "client_closed_request"),
    (StorageError, "internal"),
    (DatabaseError, "internal"),
)

_BY_STATUS = {
    401: "unauthenticated",
    404: "not_found",
    405: "method_not_allowed",
    413: "body_too_large",
    415: "unsupported_media_type",
    422: "invalid_request",
}
_FIRST_SERVER_STATUS = 500


def code_of_status(status: int) -> str:
    """Return the code of an error that the framework raised with nothing but a status."""
    if status >= _FIRST_SERVER_STATUS:
        return "internal"
    return _BY_STATUS.get(status, "bad_request")


def translate(error: Exception) -> Answer:
    """Return what the user is told about an exception; its text is never part of it."""
    match error:
        case ApiError():
            kind = ERRORS[error.code]
            detail = error.detail or kind.detail
            return Answer(error.code, kind, detail, error.fields, error.headers, error.extra)
        case NotAFormError():
            detail = (
                "Send the document as multipart/form-data with a part named 'file', or name an "
                "object as JSON with 'source'."
            )
            return Answer("unsupported_media_type", ERRORS["unsupported_media_type"], detail)
        case CursorError():
            problem = FieldProblem("cursor", "is not a cursor that this API returned")
            return translate(InvalidFieldsError(problem))
        case DocumentError():
            return _plain(error.code)
    return _plain(
        next((code for kind, code in _TRANSLATIONS if isinstance(error, kind)), "internal")
    )


def is_answered(code: str) -> bool:
    """Say whether a code can be the answer to a request."""
    return ERRORS[code].status is not None


def sentence(code: str) -> str:
    """Return what a user is told about the code of a document or a page."""
    return ERRORS.get(code, ERRORS["internal"]).detail


def _plain(code: str) -> Answer:
    return Answer(code, ERRORS[code], ERRORS[code].detail)
