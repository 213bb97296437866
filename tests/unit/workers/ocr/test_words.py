from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.ocr.long_lines import PlacedCharacter
from workers.ocr.words import place_words

PITCH_PX = 20


def spelled(text: str) -> tuple[PlacedCharacter, ...]:
    return tuple(
        PlacedCharacter(letter, PITCH_PX * i + 6, PITCH_PX * i + 14, 0.9)
        for i, letter in enumerate(text)
    )


def blanks_of(text: str) -> np.ndarray:
    """Ink under every letter but for two pixels at its ends; none under spaces."""
    blank = np.ones(PITCH_PX * len(text), dtype=bool)
    for i, letter in enumerate(text):
        if letter != " ":
            blank[PITCH_PX * i + 2 : PITCH_PX * (i + 1) - 2] = False
    return blank


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ab cd", ["ab", "cd"]),
        ("", []),
        ("   ", []),
        (" a  b ", ["a", "b"]),
        ("東京2024年", ["東", "京", "2024", "年"]),
        ("abか", ["ab", "か"]),
        ("한국 어", ["한국", "어"]),
    ],
)
def test_words_stand_between_spaces_and_cjk_characters_alone(text: str, words: list[str]) -> None:
    placed = place_words(spelled(text), blanks_of(text))

    assert [word.text for word in placed] == words


def test_words_end_where_their_ink_ends() -> None:
    text = "ab cd"

    first, second = place_words(spelled(text), blanks_of(text))

    assert (first.start, first.stop) == pytest.approx((2 / 100, 38 / 100))
    assert (second.start, second.stop) == pytest.approx((62 / 100, 98 / 100))


def test_words_whose_ink_touches_meet_half_way() -> None:
    first, second = place_words(spelled("漢字"), np.zeros(40, dtype=bool))

    assert first.stop == second.start == pytest.approx(0.5)


def test_a_line_whose_ink_is_too_faint_to_see_is_one_word_from_end_to_end() -> None:
    (word,) = place_words(spelled("ab"), np.ones(40, dtype=bool))

    assert (word.start, word.stop) == (0, 1)


@given(st.text(alphabet="a 漢", max_size=30), st.integers(0, 3))
def test_words_are_in_order_inside_the_line_and_say_all_but_the_spaces(
    text: str, seed: int
) -> None:
    blank = np.random.default_rng(seed).random(max(PITCH_PX * len(text), 1)) < 0.5

    words = place_words(spelled(text), blank)

    assert "".join(word.text for word in words) == text.replace(" ", "")
    assert all(0 <= word.start < word.stop <= 1 for word in words)
    for left, right in pairwise(words):
        assert left.start <= right.start
