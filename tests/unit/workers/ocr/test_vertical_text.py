import numpy as np

from workers.ocr.vertical_text import set_in_row


def lying_line() -> np.ndarray:
    """Three signs of downward writing on their side: a dark edge that belongs on top is left."""
    crop = np.full((48, 150, 3), 255, dtype=np.uint8)
    for start in (10, 50, 90):
        crop[10:38, start : start + 8] = 0
        crop[22:26, start : start + 28] = 0
        crop[10:38, start + 25 : start + 28] = 0
    return crop


def test_characters_are_turned_upright_one_by_one() -> None:
    row = set_in_row(lying_line())

    assert row is not None
    ink_rows = np.flatnonzero((row[:, :, 0] < 128).sum(axis=1) > 0.4 * row.shape[1])
    assert ink_rows.size > 0
    assert ink_rows.mean() < row.shape[0] / 2  # the dark edges are on top


def test_a_row_keeps_every_character() -> None:
    row = set_in_row(lying_line())

    assert row is not None
    has_ink = (row[:, :, 0] < 128).any(axis=0)
    assert np.count_nonzero(np.diff(np.r_[False, has_ink].astype(int)) == 1) == 3


def test_a_row_has_the_height_of_the_crop() -> None:
    row = set_in_row(lying_line())

    assert row is not None
    assert row.shape[0] == 48


def test_a_crop_without_ink_gives_no_row() -> None:
    assert set_in_row(np.full((48, 90, 3), 255, dtype=np.uint8)) is None
