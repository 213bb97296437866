import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from workers.ocr.long_lines import PlacedCharacter
from workers.ocr.spaces import restore_spaces

LETTER_PX = 10
GAP_PX = 3


def typeset(
    text: str, *, space_px: int = 14, lost_px: int = 18, lost: str = "_"
) -> tuple[str, str]:
    """Set a text, with ``lost`` for a space that the recognizer does not see."""
    characters, ink = [], []
    place = 0
    for letter in text:
        width_px = {" ": space_px, lost: lost_px}.get(letter, LETTER_PX)
        if letter != lost:
            characters.append(PlacedCharacter(letter, place, place + width_px, 0.9))
        ink.extend([letter not in {" ", lost}] * width_px + [False] * GAP_PX)
        place += width_px + GAP_PX
    restored = restore_spaces(characters, ~np.array(ink, dtype=bool))
    return "".join(character.text for character in restored), text.replace(lost, " ")


def test_a_space_as_wide_as_the_others_is_put_back() -> None:
    restored, expected = typeset("•_one two three")

    assert restored == expected


def test_room_that_is_narrower_than_a_space_is_none() -> None:
    restored, _ = typeset("o ne tw othree")

    assert restored == "o ne tw othree"


def test_a_line_that_shows_no_spaces_is_left_as_it_is() -> None:
    restored, _ = typeset("one_two three")

    assert restored == "onetwo three"


def test_room_between_digits_is_no_space() -> None:
    restored, _ = typeset("item 1_1 costs 7")

    assert restored == "item 11 costs 7"


def test_marks_get_no_space_before_them() -> None:
    restored, _ = typeset("one two_, three_. four_; five")

    assert restored == "one two, three. four; five"


def test_a_hyphen_gets_no_space_after_it() -> None:
    restored, _ = typeset("a well -_known part")

    assert restored == "a well -known part"


def test_chinese_gets_no_spaces() -> None:
    restored, _ = typeset("一 二 三_四")

    assert restored == "一 二 三四"


@given(st.text(alphabet="ab ,•字", max_size=30), st.data())
def test_only_spaces_are_added(text: str, data: st.DataObject) -> None:
    characters = [
        PlacedCharacter(letter, 8.0 * place, 8.0 * place + 8, 0.5)
        for place, letter in enumerate(text)
    ]
    size = 8 * len(text)
    blank = np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)), dtype=bool)

    restored = restore_spaces(characters, blank)

    assert [c for c in restored if c.text != " "] == [c for c in characters if c.text != " "]
