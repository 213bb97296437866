import numpy as np
import pytest
from numpy.typing import NDArray

from workers.ocr.geometry import Box
from workers.ocr.page_ink import has_ink, inked_regions, is_seen, letter_shapes


def paper(level: int = 255) -> NDArray[np.uint8]:
    return np.full((200, 300), level, np.uint8)


def with_letters(count: int, *, level: int = 0, on: int = 255) -> NDArray[np.uint8]:
    """Print rings of 6 x 8 px, ten in a row."""
    page = paper(on)
    for number in range(count):
        top, left = 10 + 15 * (number // 10), 10 + 12 * (number % 10)
        page[top : top + 8, left : left + 6] = level
        page[top + 2 : top + 6, left + 2 : left + 4] = on
    return page


@pytest.mark.parametrize("level", [0, 128, 255])
def test_paper_of_any_color_has_no_ink(level: int) -> None:
    assert not has_ink(paper(level))


def test_a_faint_mark_is_ink() -> None:
    page = paper()
    page[50, 50] = 245

    assert has_ink(page)


def test_a_box_is_seen_by_what_is_in_it() -> None:
    page = with_letters(1)

    assert is_seen(page, Box(9, 9, 18, 20))
    assert not is_seen(page, Box(100, 100, 120, 110))
    assert not is_seen(page, Box(900, 900, 920, 910))


@pytest.mark.parametrize(("level", "on"), [(0, 255), (255, 20), (90, 160)])
def test_letters_are_counted(level: int, on: int) -> None:
    assert letter_shapes(with_letters(25, level=level, on=on), []) == 25


def test_letters_in_explained_boxes_are_not_counted() -> None:
    assert letter_shapes(with_letters(25), [Box(10, 10, 130, 18)]) == 15


def test_rules_and_solids_are_no_letters() -> None:
    page = paper()
    page[20, 10:290] = 0
    page[30:190, 10] = 0
    page[50:150, 100:200] = 0
    page[180, ::9] = 0

    assert letter_shapes(page, []) == 0


def test_a_frame_of_cells_is_no_letters() -> None:
    page = paper()
    page[10:190:12, 10:290] = 0
    page[10:190, 10:290:20] = 0

    assert letter_shapes(page, []) == 0


def test_shapes_that_meet_at_a_corner_are_one() -> None:
    page = paper()
    page[20:26, 20:26] = 0
    page[26:32, 26:32] = 0

    assert letter_shapes(page, []) == 1


def test_a_blank_page_has_no_letters() -> None:
    assert letter_shapes(paper(), []) == 0


def test_a_region_whose_ink_is_text_needs_nothing() -> None:
    page = with_letters(10)
    regions = [Box(0, 0, 300, 40), Box(0, 100, 300, 200)]

    assert inked_regions(page, regions, []) == regions[:1]
    assert inked_regions(page, regions, [Box(10, 10, 130, 18)]) == []
