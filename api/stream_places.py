"""How many answers may wait at a time for something to happen."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from api.errors import ApiError


class StreamPlaces:
    """Places for streams and waiting requests, so many a key; used in the event loop alone."""

    def __init__(self, *, per_key: int, total: int) -> None:
        self._per_key = per_key
        self._total = total
        self._taken: Counter[str] = Counter()

    @contextmanager
    def place(self, key_id: str | None) -> Iterator[None]:
        """Take a place of a key.

        Raises:
            ApiError: the key, or the process, has none left.
        """
        key = key_id or ""
        if self._taken[key] >= self._per_key or self._taken.total() >= self._total:
            raise ApiError("too_many_streams")
        self._taken[key] += 1
        try:
            yield
        finally:
            self._taken[key] -= 1
            if not self._taken[key]:
                del self._taken[key]
