"""What was read in a crop, kept under the crop's own bytes: letterheads and forms come again."""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from workers.ocr.long_lines import PlacedCharacter

_KEY_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class CacheCounts:
    """How often a crop was known, and how often it was not."""

    hits: int
    misses: int


@dataclass(frozen=True, slots=True)
class _Entry:
    """Characters packed to a seventh of their size, since 20,000 lines are kept.

    ``numbers`` is (L, 3) float64: start, stop, confidence of each character.
    """

    texts: tuple[str, ...]
    numbers: NDArray[np.float64]


class CropCache:
    """The last readings, the least recently used dropped first; several threads may use it.

    A reading depends on its crop alone, so a text is the same whether it comes from here or
    from the model.
    """

    def __init__(self, max_count: int) -> None:
        """Make an empty cache.

        Args:
            max_count: crops that are kept; 0 keeps none.
        """
        self._max_count = max_count
        self._entries: OrderedDict[bytes, _Entry] = OrderedDict()
        self._lock = threading.Lock()
        self._hits = 0
        self._misses = 0

    @property
    def counts(self) -> CacheCounts:
        with self._lock:
            return CacheCounts(self._hits, self._misses)

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: bytes) -> tuple[PlacedCharacter, ...] | None:
        """Return what was read in the crop of a key, None when it is not known."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                self._misses += 1
                return None
            self._hits += 1
            self._entries.move_to_end(key)
        return tuple(
            PlacedCharacter(text, *numbers)
            for text, numbers in zip(entry.texts, entry.numbers.tolist(), strict=True)
        )

    def put(self, key: bytes, characters: Sequence[PlacedCharacter]) -> None:
        """Keep what was read in the crop of a key."""
        if not self._max_count:
            return
        entry = _Entry(
            tuple(character.text for character in characters),
            np.array(
                [(each.start_px, each.stop_px, each.confidence) for each in characters],
                dtype=np.float64,
            ).reshape(-1, 3),
        )
        with self._lock:
            self._entries[key] = entry
            self._entries.move_to_end(key)
            if len(self._entries) > self._max_count:
                self._entries.popitem(last=False)


def crop_key(crop: NDArray[np.uint8]) -> bytes:
    """Return BLAKE2b-128 over a crop's shape, type and bytes."""
    digest = hashlib.blake2b(f"{crop.shape} {crop.dtype} ".encode(), digest_size=_KEY_BYTES)
    digest.update(np.ascontiguousarray(crop).data)
    return digest.digest()
