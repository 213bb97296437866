"""How many answers may take their time at once."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from api.errors import ApiError


class AnswerPlaces:
    """Places for answers of one kind, so many an owner; used in the event loop alone.

    Args:
        code: of the error where none is left.
        per_owner: at most.
        total: of all owners.
    """

    def __init__(self, code: str, *, per_owner: int, total: int) -> None:
        self._code = code
        self._per_owner = per_owner
        self._total = total
        self._taken: Counter[str] = Counter()

    @contextmanager
    def place(self, owner: str | None) -> Iterator[None]:
        """Take a place of an owner; those without a name share theirs.

        Raises:
            ApiError: the owner, or the process, has none left.
        """
        name = owner or ""
        if self._taken[name] >= self._per_owner or self._taken.total() >= self._total:
            raise ApiError(self._code)
        self._taken[name] += 1
        try:
            yield
        finally:
            self._taken[name] -= 1
            if not self._taken[name]:
                del self._taken[name]
