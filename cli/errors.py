"""What a command may end with, and the exit codes.

0: all was done. 1: something failed, or some documents did. 2: the command line or the settings
are wrong, so nothing was tried. 130: stopped with Ctrl-C.
"""

from uuid import UUID

EXIT_FAILED = 1
EXIT_USAGE = 2


class CommandError(Exception):
    """A command cannot go on; shown as one line with the remedy below it.

    Attributes:
        message: what was expected and what was found.
        remedy: what the user can do; empty only when the message says it.
        exit_code: ``EXIT_FAILED`` or ``EXIT_USAGE``.
    """

    def __init__(self, message: str, remedy: str, *, exit_code: int = EXIT_FAILED) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.exit_code = exit_code


class ApiError(CommandError):
    """The API refused or cannot be reached; ``code`` and ``status`` are those of its answer.

    Attributes:
        code: the problem's code, or ``unreachable``.
        status: the HTTP status; None when there was no answer.
        retry_after_s: when to come back, where the API says so.
        document_id: of the document that an Idempotency-Key has already made.
        of_document: code and message with which the document ended that was asked for.
    """

    def __init__(
        self,
        message: str,
        remedy: str,
        *,
        code: str,
        status: int | None = None,
        retry_after_s: float | None = None,
        document_id: UUID | None = None,
        of_document: tuple[str, str] | None = None,
    ) -> None:
        super().__init__(message, remedy)
        self.code = code
        self.status = status
        self.retry_after_s = retry_after_s
        self.document_id = document_id
        self.of_document = of_document
