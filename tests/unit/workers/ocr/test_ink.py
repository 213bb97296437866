import numpy as np
import pytest

from workers.ocr.ink import blank_columns, column_contrast, widest_blank


def test_columns_without_ink_are_blank_on_any_paper() -> None:
    crop = np.full((48, 6, 3), 200, dtype=np.uint8)
    crop[10:20, 2:4] = 20

    blank = blank_columns(column_contrast(crop))

    assert blank.tolist() == [True, True, False, False, True, True]


def test_a_crop_of_one_color_is_all_blank() -> None:
    crop = np.full((48, 5, 3), 90, dtype=np.uint8)

    assert blank_columns(column_contrast(crop)).all()


@pytest.mark.parametrize(
    ("blank", "expected"),
    [
        ([0, 1, 1, 0, 1], (1, 3)),
        ([1, 0, 1], (0, 1)),
        ([1, 1], (0, 2)),
        ([0, 0], None),
        ([], None),
    ],
)
def test_the_widest_blank_is_the_first_of_equals(
    blank: list[int], expected: tuple[int, int] | None
) -> None:
    assert widest_blank(np.array(blank, dtype=bool)) == expected
