"""What ends the listing of a batch for good."""


class ListingFailedError(Exception):
    """Nothing more is found, however often it is tried.

    Args:
        code: one of ``api.errors.ERRORS``.
        detail: what to say of it in place of the code's sentence; written for the user.
    """

    def __init__(self, code: str, detail: str | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.detail = None if detail is None else _storable(detail)


_MAX_CHARACTERS = 500


def _storable(detail: str) -> str:
    """Return a text that a database takes, whatever somebody's manifest has put into it."""
    return detail.encode("utf-8", "backslashreplace").decode().replace("\0", " ")[:_MAX_CHARACTERS]
