"""What an error means: retry or not, what it leaves behind, what a user is told, who is woken.

One table, read by workers and API. ``tests/test_failures.py`` walks all error classes of all
packages, so that none is left out.
"""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

import structlog

from db.errors import (
    DatabaseError,
    DatabaseUnavailableError,
    OutcomeUnknownError,
    StaleStateError,
)
from storage.errors import (
    BucketNotFoundError,
    ObjectChangedError,
    ObjectCorruptError,
    ObjectNotFoundError,
    SourceNotFoundError,
    SourceRefusedError,
    StorageError,
    StorageUnavailableError,
)
from workers.app import HostExhaustedError
from workers.dispatch import DispatchError
from workers.ocr.errors import (
    DocumentError,
    InferenceError,
    ModelFileError,
    OcrError,
    PageError,
    PoisonedContextError,
    ProviderUnavailableError,
    RenderChildError,
)
from workers.settings import SettingsError
from workers.work_metrics import count_ended_slot, count_failure

log = structlog.get_logger(__name__)

EXIT_POISONED = 75  # EX_TEMPFAIL: the work was put back, a new process takes over


class Category(StrEnum):
    """What is at fault, and with that what is to be done."""

    INPUT = "input"  # ends as failed; the same answer next time
    TRANSIENT = "transient"  # put back with a delay, not counted as an attempt
    CAPACITY = "capacity"  # put back with a delay, counted
    SUPERSEDED = "superseded"  # ends quietly: somebody else has it
    INTERRUPTED = "interrupted"  # put back at once, not counted: this worker is being stopped
    CONFIGURATION = "configuration"  # put back, not counted; an operator is needed
    BUG = "bug"  # ends as failed, and is raised for a developer to see


class Woken(StrEnum):
    """Who has to act."""

    NOBODY = "nobody"
    OPERATOR_IF_IT_LASTS = "operator if it lasts"
    OPERATOR = "operator"
    DEVELOPERS = "developers"


# First match wins, so subclasses stand before their bases.
CATEGORIES: tuple[tuple[type[BaseException], Category], ...] = (
    (DocumentError, Category.INPUT),
    (PageError, Category.INPUT),
    (ModelFileError, Category.CONFIGURATION),
    (ProviderUnavailableError, Category.CONFIGURATION),
    (InferenceError, Category.CAPACITY),
    (RenderChildError, Category.CAPACITY),
    (OcrError, Category.BUG),
    (StorageUnavailableError, Category.TRANSIENT),
    # Objects of users: theirs to put right, and no key that we computed.
    (SourceNotFoundError, Category.INPUT),
    (SourceRefusedError, Category.INPUT),
    (ObjectChangedError, Category.INPUT),
    (ObjectNotFoundError, Category.BUG),
    (ObjectCorruptError, Category.BUG),
    (BucketNotFoundError, Category.CONFIGURATION),
    (StorageError, Category.CONFIGURATION),
    (StaleStateError, Category.SUPERSEDED),
    (OutcomeUnknownError, Category.TRANSIENT),
    (DatabaseUnavailableError, Category.TRANSIENT),
    (DatabaseError, Category.BUG),
    (DispatchError, Category.TRANSIENT),
    (SettingsError, Category.CONFIGURATION),
    (SystemExit, Category.INTERRUPTED),  # what SIGTERM raises in a pool child
    (MemoryError, Category.CAPACITY),
    (HostExhaustedError, Category.CAPACITY),
)

# A full, broken or read-only disk or too many open files are the machine's fault, whichever
# document meets them.
_OF_THE_MACHINE = frozenset({
    errno.EAGAIN,
    errno.EDQUOT,
    errno.EIO,
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOMEM,
    errno.ENOSPC,
    errno.EROFS,
    errno.ESTALE,
})

WOKEN: dict[Category, Woken] = {
    Category.INPUT: Woken.NOBODY,
    Category.TRANSIENT: Woken.OPERATOR_IF_IT_LASTS,
    Category.CAPACITY: Woken.OPERATOR_IF_IT_LASTS,
    Category.SUPERSEDED: Woken.NOBODY,
    Category.INTERRUPTED: Woken.NOBODY,
    Category.CONFIGURATION: Woken.OPERATOR,
    Category.BUG: Woken.DEVELOPERS,
}


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """One row of the table that users read.

    Attributes:
        code: stable name in results, API answers and logs.
        is_retried: whether Pagefleet itself tries again before a user sees the code.
        http_status: the answer's status where the code ends a request; None: never does.
        sentence: what happened and the remedy, for a user.
    """

    code: str
    is_retried: bool
    http_status: int | None
    sentence: str


ERROR_CODES: dict[str, ErrorCode] = {
    row.code: row
    for row in (
        ErrorCode(
            "unsupported_media_type",
            is_retried=False,
            http_status=415,
            sentence="The content is neither a PDF nor a still PNG, JPEG, TIFF, WebP or BMP image. "
            "Convert it to one of these.",
        ),
        ErrorCode(
            "file_too_large",
            is_retried=False,
            http_status=413,
            sentence="The file is larger than the limit. Split it, or ask for a higher limit.",
        ),
        ErrorCode(
            "too_many_pages",
            is_retried=False,
            http_status=422,
            sentence="The document has more pages than the limit. "
            "Split it, or ask for a higher limit.",
        ),
        ErrorCode(
            "exceeds_max_pages",
            is_retried=False,
            http_status=422,
            sentence="The document has more pages than its option max_pages allows. "
            "Raise max_pages or leave it out, or split the document.",
        ),
        ErrorCode(
            "no_such_page",
            is_retried=False,
            http_status=422,
            sentence="The document has none of the pages that its option pages asks for. "
            "Choose pages that it has.",
        ),
        ErrorCode(
            "page_too_large",
            is_retried=False,
            http_status=None,
            sentence="The page has more pixels than the limit. "
            "Scan it at a lower resolution, or ask for a higher limit.",
        ),
        ErrorCode(
            "encrypted",
            is_retried=False,
            http_status=422,
            sentence="The file is protected by a password that was not sent, or is another one. "
            "Send it again with its password, or without protection.",
        ),
        ErrorCode(
            "damaged",
            is_retried=False,
            http_status=422,
            sentence="The file or page is damaged and cannot be read. "
            "Open it in a viewer and save it again, or scan it again.",
        ),
        ErrorCode(
            "empty",
            is_retried=False,
            http_status=422,
            sentence="The file has no bytes or no pages. Check the upload and send it again.",
        ),
        ErrorCode(
            "page_timeout",
            is_retried=False,
            http_status=None,
            sentence="The page took longer than the time limit. "
            "Send it as an image, or ask for a higher limit.",
        ),
        ErrorCode(
            "page_crashed",
            is_retried=False,
            http_status=None,
            sentence="The reader of this page crashed or ran out of memory. "
            "Send the page as an image.",
        ),
        ErrorCode(
            "gpu_out_of_memory",
            is_retried=True,
            http_status=None,
            sentence="The page needs more memory than the device has. "
            "Send it at a lower resolution.",
        ),
        ErrorCode(
            "model_missing",
            is_retried=True,
            http_status=None,
            sentence="A worker lacks its model files. The operator has been told; "
            "the document goes on when they are there.",
        ),
        ErrorCode(
            "storage_unavailable",
            is_retried=True,
            http_status=503,
            sentence="The storage cannot be reached at the moment. Try again later.",
        ),
        ErrorCode(
            "database_unavailable",
            is_retried=True,
            http_status=503,
            sentence="The database cannot be reached at the moment. Try again later.",
        ),
        ErrorCode(
            "source_not_found",
            is_retried=False,
            http_status=422,
            sentence="There is no such object, or version of it, in the bucket. "
            "Check bucket, key and version, and send it again.",
        ),
        ErrorCode(
            "source_refused",
            is_retried=False,
            http_status=422,
            sentence="The storage does not hand out the object to Pagefleet. "
            "Let its account read the bucket, or restore an archived object, and send it again.",
        ),
        ErrorCode(
            "source_changed",
            is_retried=False,
            http_status=None,
            sentence="The object was replaced after the document had been accepted. "
            "Send the new one as a document of its own.",
        ),
        ErrorCode(
            "worker_lost",
            is_retried=True,
            http_status=None,
            sentence="Several workers in turn died on this document, or on this page, tried "
            "alone. Export it again, or send the page as an image.",
        ),
        ErrorCode(
            "cancelled",
            is_retried=False,
            http_status=409,
            sentence="The document was cancelled. Retry it if you need it after all.",
        ),
        ErrorCode(
            "quota_exceeded",
            is_retried=False,
            http_status=429,
            sentence="The quota of this key is used up. Wait, or ask for a higher quota.",
        ),
        ErrorCode(
            "internal",
            is_retried=False,
            http_status=500,
            sentence="An internal error occurred. Send it again; "
            "if it fails again, report the document's id.",
        ),
    )
}

_CODES_OUTSIDE_THE_CORE: tuple[tuple[type[BaseException], str], ...] = (
    (SourceNotFoundError, "source_not_found"),
    (SourceRefusedError, "source_refused"),
    (ObjectChangedError, "source_changed"),
    (StorageUnavailableError, "storage_unavailable"),
    (DatabaseUnavailableError, "database_unavailable"),
)


@dataclass(frozen=True, slots=True)
class Failure:
    """An error after the table was asked; ``sentence`` is for the user."""

    category: Category
    code: str
    sentence: str

    @property
    def woken(self) -> Woken:
        return WOKEN[self.category]

    @property
    def is_final(self) -> bool:
        """Whether the work ends here instead of being put back."""
        return self.category in {Category.INPUT, Category.BUG}

    @property
    def is_excused(self) -> bool:
        """Whether a retry does not count towards the cap on attempts."""
        return self.category in {
            Category.TRANSIENT,
            Category.CONFIGURATION,
            Category.INTERRUPTED,
        }


def classify(error: BaseException) -> Failure:
    """Look an error up in the tables; what is not there is a bug of ours."""
    category = next(
        (category for kind, category in CATEGORIES if isinstance(error, kind)), Category.BUG
    )
    if isinstance(error, OSError) and error.errno in _OF_THE_MACHINE:
        category = Category.TRANSIENT
    code = error.code if isinstance(error, OcrError) else _code_of(error)
    is_told = isinstance(error, OcrError) and error.is_told
    return Failure(category, code, str(error) if is_told else ERROR_CODES[code].sentence)


def cause_of_lost_page(last_code: str | None) -> ErrorCode:
    """Return what a page ends with that nobody could read.

    Args:
        last_code: what its last attempt failed with; None: its process died without a word.
    """
    if last_code is None:
        return ERROR_CODES["worker_lost"]
    is_told = last_code in {"gpu_out_of_memory", "page_timeout"}
    return ERROR_CODES[last_code if is_told else "page_crashed"]


def _code_of(error: BaseException) -> str:
    return next(
        (code for kind, code in _CODES_OUTSIDE_THE_CORE if isinstance(error, kind)), "internal"
    )


@contextmanager
def decided(
    *, put_back: Callable[[Failure], None], fail: Callable[[Failure], None]
) -> Iterator[None]:
    """Run claimed work and record how it ended when it ends badly.

    Args:
        put_back: gives the claim back for a later attempt.
        fail: ends the claimed row as failed.

    Work that was superseded, or whose input is at fault, has done what there was to do and ends
    quietly; everything else is raised after it was recorded, because a task that did not do its
    work must not end as a success. A process that cannot be trusted any more ends here.

    Raises:
        HostExhaustedError: in place of a ``MemoryError``.
        SystemExit: this worker is being stopped; the work was put back at once.
    """
    try:
        yield
    except (Exception, SystemExit) as error:
        failure = classify(error)
        _log(failure, error)
        count_failure(failure.category)
        try:
            is_settled = _record(failure, put_back=put_back, fail=fail)
        finally:
            if isinstance(error, PoisonedContextError):
                count_ended_slot("poisoned")
                # Not even an orderly exit can be trusted.
                os._exit(EXIT_POISONED)
        if is_settled and not isinstance(error, SystemExit):
            return
        if isinstance(error, MemoryError):
            raise HostExhaustedError("no memory is left on this machine") from error
        raise


def _record(
    failure: Failure, *, put_back: Callable[[Failure], None], fail: Callable[[Failure], None]
) -> bool:
    """Write down how the work ended; return whether nothing is left to be done or told."""
    if failure.category is Category.SUPERSEDED:
        return True
    try:
        (fail if failure.is_final else put_back)(failure)
    except StaleStateError:
        log.info("work was taken over meanwhile")  # whoever has the row records its outcome
        return True
    except DatabaseError:
        log.exception("failure not recorded")  # the lease ends, and the sweep sends it again
        return False
    return failure.category is Category.INPUT


def _log(failure: Failure, error: BaseException) -> None:
    fields = {
        "category": failure.category,
        "code": failure.code,
        "error": type(error).__name__,
        "woken": failure.woken,
    }
    if failure.category in {Category.SUPERSEDED, Category.INPUT, Category.INTERRUPTED}:
        log.info("work ended early", **fields)
    elif failure.category in {Category.BUG, Category.CONFIGURATION}:
        log.error("work failed", **fields)
    else:
        log.warning("work put back", **fields)
