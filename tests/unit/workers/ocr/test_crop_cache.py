import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.fake_sessions import barcode
from workers.ocr.crop_cache import CacheCounts, CropCache, crop_key
from workers.ocr.long_lines import PlacedCharacter

LINE = (PlacedCharacter("a", 0.0, 8.0, 0.75), PlacedCharacter("ﬁ", 8.0, 24.0, 0.1 + 0.2))

characters = st.builds(
    PlacedCharacter,
    st.text(min_size=1, max_size=2),
    st.floats(0, 4000),
    st.floats(0, 4000),
    st.floats(0, 1),
)


@given(st.lists(characters, max_size=20))
def test_what_goes_in_comes_out_to_the_last_bit(line: list[PlacedCharacter]) -> None:
    cache = CropCache(4)

    cache.put(b"key", line)

    assert cache.get(b"key") == tuple(line)


def test_the_least_recently_used_goes_first() -> None:
    cache = CropCache(2)
    cache.put(b"a", LINE)
    cache.put(b"b", LINE)
    cache.get(b"a")

    cache.put(b"c", LINE)

    assert [cache.get(key) is None for key in (b"a", b"b", b"c")] == [False, True, False]
    assert len(cache) == 2


def test_hits_and_misses_are_counted() -> None:
    cache = CropCache(2)
    cache.put(b"a", LINE)

    for key in (b"a", b"a", b"b"):
        cache.get(key)

    assert cache.counts == CacheCounts(hits=2, misses=1)


def test_a_cache_of_none_keeps_nothing() -> None:
    cache = CropCache(0)

    cache.put(b"a", LINE)

    assert cache.get(b"a") is None


@pytest.mark.parametrize(
    "other",
    [
        barcode("AC"),
        barcode("AB", step_count=2),
        barcode("AB").reshape(96, 8, 3),
        barcode("AB").astype(np.int8),
    ],
)
def test_a_key_covers_bytes_shape_and_type(other: np.ndarray) -> None:
    assert crop_key(other) != crop_key(barcode("AB"))
    assert crop_key(barcode("AB")) == crop_key(barcode("AB")[:, ::-1][:, ::-1])
