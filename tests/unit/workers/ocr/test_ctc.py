import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.ocr.ctc import BLANK, DecodedCharacter, decode_greedy, mean_confidence

CHARSET = ("a", "b", "\u2028", "　", " ")


def decode(classes: list[int]) -> tuple[DecodedCharacter, ...]:
    return decode_greedy(
        np.array(classes, dtype=np.int64), np.linspace(0.5, 1, len(classes)), CHARSET
    )


def text_of(classes: list[int]) -> str:
    return "".join(character.text for character in decode(classes))


@pytest.mark.parametrize(
    ("classes", "text"),
    [
        ([1, 1, 2], "ab"),
        ([1, 0, 1], "aa"),
        ([0, 0, 0], ""),
        ([], ""),
        ([5, 1, 5], " a "),
        ([3, 4], "\u2028　"),
    ],
)
def test_repeats_are_merged_before_blanks_are_dropped(classes: list[int], text: str) -> None:
    assert text_of(classes) == text


def test_a_character_knows_its_steps_and_the_confidence_of_the_first() -> None:
    (character,) = decode_greedy(np.array([0, 1, 1, 0]), np.array([0.9, 0.8, 0.3, 0.9]), CHARSET)

    assert (character.step_start, character.step_stop) == (1, 3)
    assert character.confidence == pytest.approx(0.8)


classes_of_a_line = st.lists(st.integers(0, len(CHARSET)), max_size=60)


@given(classes_of_a_line)
def test_decoding_never_invents_a_character(classes: list[int]) -> None:
    for character in decode(classes):
        steps = classes[character.step_start : character.step_stop]

        assert {CHARSET[step - 1] for step in steps} == {character.text}


@given(classes_of_a_line)
def test_characters_stand_in_order_and_never_share_a_step(classes: list[int]) -> None:
    decoded = decode(classes)

    bounds = [bound for c in decoded for bound in (c.step_start, c.step_stop)]
    assert bounds == sorted(bounds)
    assert all(c.step_start < c.step_stop for c in decoded)


@given(classes_of_a_line, st.integers(0, 60))
def test_a_blank_beside_a_blank_changes_nothing(classes: list[int], position: int) -> None:
    position = min(position, len(classes))
    with_blank = [*classes[:position], BLANK, BLANK, *classes[position:]]
    with_one = [*classes[:position], BLANK, *classes[position:]]

    assert text_of(with_blank) == text_of(with_one)


@given(st.text(alphabet="ab ", max_size=20))
def test_any_text_survives_being_spelled_with_blanks(text: str) -> None:
    classes = [step for letter in text for step in (CHARSET.index(letter) + 1, BLANK)]

    assert text_of(classes) == text


@pytest.mark.parametrize("classes", [[6], [-1]])
def test_a_class_outside_the_charset_is_refused(classes: list[int]) -> None:
    with pytest.raises(ValueError, match="charset"):
        decode(classes)


def test_lengths_that_differ_are_refused() -> None:
    with pytest.raises(ValueError, match="twice"):
        decode_greedy(np.array([1, 2]), np.array([0.5]), CHARSET)


def test_the_confidence_of_an_empty_line_is_zero() -> None:
    assert mean_confidence([]) == 0.0


def test_the_confidence_is_the_mean_of_the_kept_steps() -> None:
    assert mean_confidence([0.5, 1.0]) == pytest.approx(0.75)
