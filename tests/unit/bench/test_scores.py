import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.scores import edit_distance, score

texts = st.text(alphabet="ab c", max_size=12)


def test_the_same_text_is_perfect_whatever_its_line_breaks() -> None:
    figures = score("one two\nthree", "one  two three", "en")

    assert (figures.cer, figures.f1) == (0.0, 1.0)


def test_another_order_costs_cer_and_no_f1() -> None:
    figures = score("left one right two", "right two left one", "en")

    assert figures.cer > 0.5
    assert figures.f1 == 1.0


def test_japanese_is_compared_by_characters_without_spaces() -> None:
    figures = score("東京 都", "東京都", "ja")

    assert (figures.cer, figures.f1) == (0.0, 1.0)


def test_one_wrong_word_of_four_costs_a_quarter_of_f1() -> None:
    assert score("a b c d", "a b c x", "en").f1 == 0.75


def test_full_width_forms_and_the_long_s_are_no_errors() -> None:
    assert score("ma\u017fter \uff21", "master A", "fr").cer == 0.0


def test_nothing_read_has_all_errors() -> None:
    figures = score("text", "", "en")

    assert (figures.cer, figures.f1) == (1.0, 0.0)


@given(left=texts, right=texts)
def test_edit_distance_is_symmetric_and_bounded(left: str, right: str) -> None:
    distance = edit_distance(left, right)

    assert distance == edit_distance(right, left)
    assert abs(len(left) - len(right)) <= distance <= max(len(left), len(right))


@pytest.mark.parametrize(
    ("left", "right", "distance"), [("kitten", "sitting", 3), ("", "abc", 3), ("flaw", "lawn", 2)]
)
def test_known_edit_distances(left: str, right: str, distance: int) -> None:
    assert edit_distance(left, right) == distance
