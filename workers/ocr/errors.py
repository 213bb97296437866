"""Errors of the OCR core; each class carries the code that results and users see."""

from typing import ClassVar


class OcrError(Exception):
    """Root of the core's errors.

    Attributes:
        code: see above.
        is_told: whether the message is made of nothing but what the sender chose and numbers, so
            that it stands in place of the code's own sentence.
    """

    code: ClassVar[str] = "internal"
    is_told: ClassVar[bool] = False


class DocumentError(OcrError):
    """The document is at fault; trying again gives the same answer."""


class UnsupportedMediaTypeError(DocumentError):
    """The content is none of the formats that are read."""

    code: ClassVar[str] = "unsupported_media_type"


class EmptyDocumentError(DocumentError):
    """The file has no bytes, or no pages."""

    code: ClassVar[str] = "empty"


class UnreadableDocumentError(DocumentError):
    """The file is damaged beyond what its reader can repair."""

    code: ClassVar[str] = "damaged"


class EncryptedDocumentError(DocumentError):
    """The file needs a password that was not given or is wrong."""

    code: ClassVar[str] = "encrypted"


class DocumentTooLargeError(DocumentError):
    """A limit is exceeded; ``limit`` and ``actual`` have the unit that the message names."""

    def __init__(self, message: str, *, limit: int, actual: int) -> None:
        super().__init__(message)
        self.limit = limit
        self.actual = actual


class FileTooLargeError(DocumentTooLargeError):
    """The file has more bytes than the limit."""

    code: ClassVar[str] = "file_too_large"


class TooManyPagesError(DocumentTooLargeError):
    """The document has more pages than the limit."""

    code: ClassVar[str] = "too_many_pages"


class ExceedsMaxPagesError(DocumentTooLargeError):
    """The document has more pages than its option ``max_pages`` allows."""

    code: ClassVar[str] = "exceeds_max_pages"
    is_told: ClassVar[bool] = True

    def __init__(self, *, limit: int, actual: int) -> None:
        super().__init__(
            f"The document has {actual} pages, and its option max_pages allows {limit}. Raise "
            "max_pages or leave it out, or split the document.",
            limit=limit,
            actual=actual,
        )


class NoSuchPageError(DocumentError):
    """The document has none of the pages that its option ``pages`` asks for."""

    code: ClassVar[str] = "no_such_page"
    is_told: ClassVar[bool] = True

    def __init__(self, pages: str, page_count: int) -> None:
        has = "1 page" if page_count == 1 else f"{page_count} pages"
        super().__init__(
            f"The document has {has}, and none of those that its option pages asks for: "
            f"{pages}. Choose pages that it has."
        )


class PageError(OcrError):
    """One page is at fault; the other pages of its document go on."""


class DamagedPageError(PageError):
    """The page cannot be rendered or decoded."""

    code: ClassVar[str] = "damaged"


class PageTooLargeError(PageError):
    """The page has more pixels than the limit, even at the lowest resolution that is tried."""

    code: ClassVar[str] = "page_too_large"


class PageTimeoutError(PageError):
    """The page took longer than its time limit; the child that worked on it was killed."""

    code: ClassVar[str] = "page_timeout"


class PageCrashedError(PageError):
    """The child that rendered the page died, of a crash or of its memory limit."""

    code: ClassVar[str] = "page_crashed"


class RenderChildError(OcrError):
    """The child that opens files cannot be started; nothing is said about the document."""


class InferenceError(OcrError):
    """The runtime failed on good input."""


class OutOfMemoryError(InferenceError):
    """The runtime could not allocate, even for a minibatch of one."""

    code: ClassVar[str] = "gpu_out_of_memory"


class PoisonedContextError(InferenceError):
    """The device's context is corrupt: this process must end, and its work be done again."""


class SessionLostError(PoisonedContextError):
    """A model could not be loaded again after running out of memory: this process must end."""


class ProviderUnavailableError(InferenceError):
    """The requested device is not there, or is not the one that runs."""


class ModelFileError(OcrError):
    """A model file is missing, is not the pinned SHA-256, or does not fit its manifest."""

    code: ClassVar[str] = "model_missing"


class ArithmeticCheckError(ModelFileError):
    """A model on its engine and precision does not read a printed page whose text is known."""


class StoredResultError(OcrError):
    """The bytes are no result of schema ``pagefleet/1`` as this program writes them."""
