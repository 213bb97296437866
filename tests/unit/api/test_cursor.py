from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.cursor import (
    INDEX_PATTERN,
    PLACE_PATTERN,
    CursorError,
    decode_id,
    decode_index,
    decode_place,
    encode_id,
    encode_index,
    encode_place,
)


@given(st.uuids())
def test_a_cursor_gives_its_id_back(last_id: UUID) -> None:
    assert decode_id(encode_id(last_id)) == last_id


@given(st.integers(min_value=0, max_value=2**31 - 1))
def test_a_cursor_gives_its_index_back(last_index: int) -> None:
    assert decode_index(encode_index(last_index)) == last_index


@given(st.from_regex(r"[!-~]{2,3072}", fullmatch=True))
def test_a_cursor_gives_its_place_back(place: str) -> None:
    assert decode_place(encode_place(place)) == place


@given(st.text() | st.from_regex(PLACE_PATTERN, fullmatch=True))
def test_any_text_is_a_cursor_of_places_or_refused(text: str) -> None:
    try:
        decoded = decode_place(text)
    except CursorError:
        return
    assert decoded.isascii()


@given(st.text())
def test_any_text_is_a_cursor_of_ids_or_refused(text: str) -> None:
    try:
        decoded = decode_id(text)
    except CursorError:
        return
    assert isinstance(decoded, UUID)


@given(st.text() | st.from_regex(INDEX_PATTERN, fullmatch=True))
def test_any_text_is_a_cursor_of_indexes_or_refused(text: str) -> None:
    try:
        decoded = decode_index(text)
    except CursorError:
        return
    assert 0 <= decoded < 2**31


@pytest.mark.parametrize("text", ["", "=", "AAAA", "ä", "A" * 1_000])
def test_what_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(CursorError):
        decode_id(text)
