from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.ocr.geometry import Span
from workers.ocr.long_lines import (
    OVERLAP_PX,
    LinePiece,
    PlacedCharacter,
    join_pieces,
    split_line,
)

MAX_WIDTH_PX = 1280


def line_with_gaps(width: int, gaps: list[tuple[int, int]]) -> np.ndarray:
    """Stripes of ink without a blank column, but for the gaps."""
    line = np.full((48, width, 3), 255, dtype=np.uint8)
    line[10:38] = 0
    for start, stop in gaps:
        line[:, start:stop] = 255
    return line


def at(center: float, text: str = "x") -> PlacedCharacter:
    return PlacedCharacter(text, center - 4, center + 4, 0.9)


def test_a_line_that_fits_is_one_piece() -> None:
    (piece,) = split_line(line_with_gaps(1280, []), MAX_WIDTH_PX)

    assert piece.span == Span(0, 1280, 0, 1280)


def test_a_line_is_cut_in_the_middle_of_its_widest_blank() -> None:
    line = line_with_gaps(2000, [(600, 608), (900, 940), (1100, 1110)])

    first, second = split_line(line, MAX_WIDTH_PX)

    assert first.span.kept_stop == second.span.kept_start == 920
    assert first.blank_after_px == 40


def test_a_line_without_blanks_is_cut_where_it_is_faintest() -> None:
    line = line_with_gaps(2000, [])
    line[10:38, 1000] = 60

    first, second = split_line(line, MAX_WIDTH_PX)

    assert first.span.kept_stop == second.span.kept_start == 1000
    assert first.blank_after_px == 0


@given(width=st.integers(1, 20_000), seed=st.integers(0, 5))
def test_pieces_fit_overlap_and_cover_the_line_once(width: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    line = np.broadcast_to(
        rng.integers(0, 2, (2, width, 1), dtype=np.uint8) * 255, (2, width, 3)
    ).copy()

    pieces = split_line(line, MAX_WIDTH_PX)

    spans = [piece.span for piece in pieces]
    assert all(span.stop - span.start <= MAX_WIDTH_PX for span in spans)
    assert spans[0].kept_start == 0
    assert spans[-1].kept_stop == width
    for left, right in pairwise(spans):
        assert left.kept_stop == right.kept_start
        assert left.stop - left.kept_stop == OVERLAP_PX
        assert right.kept_start - right.start == OVERLAP_PX


PIECES = (
    LinePiece(Span(0, 164, 0, 100), blank_after_px=0),
    LinePiece(Span(36, 200, 100, 200)),
)


def test_a_character_in_the_overlap_is_taken_once() -> None:
    joined = join_pieces(PIECES, [[at(20, "a"), at(98, "b")], [at(98, "b"), at(150, "c")]])

    assert "".join(character.text for character in joined) == "abc"


def test_each_piece_is_trusted_on_its_own_side_of_the_cut() -> None:
    joined = join_pieces(PIECES, [[at(90, "a"), at(130, "?")], [at(60, "?"), at(130, "b")]])

    assert "".join(character.text for character in joined) == "ab"


@pytest.mark.parametrize(
    ("blank_px", "left", "right", "text"),
    [
        (20, "a", "b", "a b"),
        (6, "a", "b", "ab"),
        (20, " ", "b", " b"),
        (20, "a", " ", "a "),
        (20, "漢", "字", "漢字"),
    ],
)
def test_a_space_lost_at_the_cut_is_put_back(
    blank_px: int, left: str, right: str, text: str
) -> None:
    pieces = (LinePiece(PIECES[0].span, blank_px), PIECES[1])

    joined = join_pieces(pieces, [[at(90, left)], [at(110, right)]])

    assert "".join(character.text for character in joined) == text


def test_an_empty_piece_joins_to_nothing() -> None:
    assert join_pieces(PIECES, [[], []]) == ()
