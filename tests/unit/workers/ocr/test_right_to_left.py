from dataclasses import dataclass

import pytest

from workers.ocr.right_to_left import is_right_to_left, lam_alef_mended, reading_sequence

WIDTH = 5.0


@dataclass(frozen=True)
class Placed:
    text: str
    x_min: float
    x_max: float


def shown(visual: str) -> list[Placed]:
    """Characters as they stand on paper, from the left."""
    return [Placed(text, WIDTH * place, WIDTH * (place + 1)) for place, text in enumerate(visual)]


def read(visual: str) -> str:
    return "".join(each.text for each in reading_sequence(shown(visual)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("שלום", True),
        ("سلام", True),
        ("hello", False),
        ("12", False),
        ("Rو", False),
        ("و R שלום", True),
    ],
)
def test_the_direction_is_that_of_most_letters(text: str, expected: bool) -> None:  # noqa: FBT001 - a parameter
    assert is_right_to_left(text) is expected


def test_letters_are_read_from_the_right() -> None:
    assert read("םולש") == "שלום"


def test_a_number_is_read_from_the_left() -> None:
    assert read("םימי 42.5 ךרע") == "ערך 42.5 ימים"


def test_words_of_another_script_are_read_from_the_left() -> None:
    assert read("בוט Big Ben הז") == "זה Big Ben טוב"


def test_spaces_at_the_ends_go() -> None:
    assert read(" םולש  ") == "שלום"


def test_a_mark_stays_on_its_letter() -> None:
    letters = [Placed("ש", 10, 15), Placed("\u05c1", 11, 12), Placed("ל", 5, 10)]

    assert "".join(each.text for each in reading_sequence(letters)) == "ש\u05c1ל"


def test_a_reversed_lam_alef_is_mended() -> None:
    turned = [Placed("خ", 20, 25), Placed("ا", 20, 20), Placed("ل", 12, 20), Placed("ل", 8, 12)]

    assert "".join(each.text for each in lam_alef_mended(turned)) == "خلال"


def test_an_article_is_no_ligature() -> None:
    article = [Placed("ا", 20, 25), Placed("ل", 15, 20)]

    assert lam_alef_mended(article) == article
