"""Pages that are set here, line by line in reading order, as a detector would find their lines.

A line is as long as its text, at half an em a letter; what is random comes from a fixed seed.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

import numpy as np

from workers.ocr.geometry import Quad

# Detected lines are grown by a little of their height, and no two alike.
_GROWN = 0.12
_JITTER = 0.04
_EM_SHARE = 0.5


@dataclass
class Sheet:
    """Lines in reading order: left end, baseline, length and type size, in pt."""

    seed: int
    lines: list[tuple[float, float, float, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = Random(self.seed)  # noqa: S311 - layouts, not secrets

    def line(self, x: float, y: float, letters: int, size: float = 10) -> None:
        self.lines.append((x, y, _EM_SHARE * size * letters, size))

    def right_line(self, x: float, y: float, letters: int, size: float = 10) -> None:
        """Set a line that ends at x."""
        self.line(x - _EM_SHARE * size * letters, y, letters, size)

    def centered_line(self, x: float, y: float, letters: int, size: float = 10) -> None:
        self.line(x - _EM_SHARE * size * letters / 2, y, letters, size)

    def paragraph(
        self,
        x: float,
        y: float,
        width: float,
        rows: int,
        size: float = 10,
        *,
        leading: float = 1.25,
        hang: float = 0,
        is_justified: bool = False,
    ) -> float:
        """Set wrapped text, its last line short; return where the next line stands."""
        for row in range(rows):
            start = x + (hang if row else 0)
            fill = 1.0 if is_justified else self.random.uniform(0.86, 1)
            share = self.random.uniform(0.2, 0.8) if row == rows - 1 else fill
            self.lines.append((start, y, share * (x + width - start), size))
            y += leading * size
        return y

    def column(
        self,
        x: float,
        y: float,
        width: float,
        rows: int,
        size: float = 10,
        *,
        leading: float = 1.25,
        is_justified: bool = False,
    ) -> float:
        """Set paragraphs of running text; return where the next line stands."""
        left = rows
        while left:
            count = min(left, self.random.randint(3, 8))
            y = self.paragraph(x, y, width, count, size, leading=leading, is_justified=is_justified)
            left -= count
        return y

    def quads(self) -> list[Quad]:
        """Return the lines as a detector finds them at 200 dpi."""
        rng = np.random.default_rng(self.seed)
        quads = []
        for x, y, length, size in self.lines:
            box = np.array([x, y - 0.8 * size, x + length, y + 0.25 * size])
            grown = np.array([-_GROWN, -_GROWN, _GROWN, _GROWN]) * size
            left, top, right, bottom = (
                (box + grown + rng.uniform(-_JITTER, _JITTER, 4) * size) * 200 / 72
            )
            corners = [(left, top), (right, top), (right, bottom), (left, bottom)]
            quads.append(Quad(np.array(corners, np.float32)))
        return quads


def _columns(sheet: Sheet, lefts: tuple[float, ...], y: float, width: float, rows: int) -> None:
    for x in lefts:
        sheet.column(x, y, width, rows, is_justified=True)


def two_ragged_columns(sheet: Sheet) -> None:
    for x in (50, 310):
        sheet.column(x, 60, 235, 50)


def title_over_three_columns(sheet: Sheet) -> None:
    sheet.line(40, 70, 30, 24)
    _columns(sheet, (40, 216, 392), 110, 162, 50)


def headline_over_two_of_three_columns(sheet: Sheet) -> None:
    sheet.line(40, 75, 24, 24)
    _columns(sheet, (40, 216), 105, 162, 50)
    sheet.line(392, 75, 16, 14)
    sheet.column(392, 95, 162, 50)


def columns_of_uneven_length(sheet: Sheet) -> None:
    sheet.column(50, 60, 235, 52)
    sheet.column(310, 60, 235, 17)


def picture_in_one_column(sheet: Sheet) -> None:
    sheet.column(50, 60, 235, 52)
    y = sheet.column(310, 60, 235, 15)
    y = sheet.paragraph(310, y + 190, 235, 3, 8)
    sheet.column(310, y + 18, 235, 15)


def picture_over_all_columns(sheet: Sheet) -> None:
    """Its caption ends before the last column, so that only the blank strip parts this one."""
    for y, rows in ((60, 20), (530, 18)):
        if y > 60:
            sheet.line(40, 500, 70, 8)
        for x in (40, 217, 394):
            sheet.column(x, y, 160, rows, 9)


def sidebar_in_smaller_type(sheet: Sheet) -> None:
    sheet.line(50, 70, 28, 20)
    sheet.column(50, 105, 330, 44, 11, leading=1.3)
    sheet.line(410, 115, 12, 11)
    sheet.column(410, 133, 130, 30, 8.5, leading=1.35)


def quotation_between_two_columns(sheet: Sheet) -> None:
    def around(x: float, narrow_x: float) -> None:
        y = sheet.column(x, 60, 235, 20)
        y = sheet.column(narrow_x, y, 160, 8)
        sheet.column(x, y, 235, 22)

    around(50, 50)
    for row, letters in enumerate((18, 20, 17)):
        sheet.centered_line(297, 335 + 18 * row, letters, 14)
    around(310, 385)


def notes_at_the_foot_of_each_column(sheet: Sheet) -> None:
    for x in (50, 310):
        y = sheet.column(x, 60, 235, 44)
        for _ in range(3):
            y = sheet.paragraph(x, y + 2, 235, 2, 7.5)


def header_and_footer(sheet: Sheet) -> None:
    sheet.line(50, 40, 30, 9)
    sheet.right_line(545, 40, 3, 9)
    _columns(sheet, (50, 310), 75, 235, 50)
    sheet.centered_line(297, 790, 3, 9)


def table_of_figures(sheet: Sheet) -> None:
    for row in range(18):
        sheet.line(60, 80 + 16 * row, sheet.random.randint(5, 18))
        for x in (290, 370, 450, 530):
            if sheet.random.random() < 0.8:
                sheet.right_line(x, 80 + 16 * row, sheet.random.randint(3, 7))


def table_of_wrapped_cells(sheet: Sheet) -> None:
    for row in range(9):
        for x, width in ((54, 140), (208, 136), (358, 180)):
            sheet.paragraph(x, 80 + 48 * row, width, sheet.random.randint(1, 3), leading=1.2)


def table_in_one_of_two_columns(sheet: Sheet) -> None:
    sheet.column(50, 60, 235, 54, is_justified=True)
    y = sheet.column(310, 60, 235, 16, is_justified=True) + 20
    for row in range(9):
        sheet.line(314, y + 16 * row, 4, 9)
        for x in (424, 482, 540):
            sheet.right_line(x, y + 16 * row, sheet.random.randint(2, 4), 9)
    sheet.column(310, y + 170, 235, 22, is_justified=True)


def receipt(sheet: Sheet) -> None:
    sheet.centered_line(113, 40, 14, 13)
    y = 90.0
    for _ in range(14):
        sheet.line(15, y, sheet.random.randint(5, 18), 9)
        sheet.right_line(212, y, 5, 9)
        y += 13
        if sheet.random.random() < 0.3:
            sheet.line(25, y, 9, 9)
            y += 13
    sheet.line(15, y + 12, 6, 12)
    sheet.right_line(212, y + 12, 6, 12)


def form_with_two_pairs_a_row(sheet: Sheet) -> None:
    for row in range(14):
        for x in (50, 310):
            sheet.line(x, 110 + 24 * row, sheet.random.randint(5, 16))
            sheet.line(x + 105, 110 + 24 * row, sheet.random.randint(5, 22))


def letter(sheet: Sheet) -> None:
    for row, letters in enumerate((14, 20, 17)):
        sheet.line(400, 70 + 14 * row, letters, 11)
    for row, letters in enumerate((22, 18, 12)):
        sheet.line(70, 170 + 14 * row, letters, 11)
    sheet.line(70, 240, 36, 11)
    y = 270.0
    for _ in range(4):
        y = sheet.paragraph(70, y, 455, 5, 11, leading=1.3) + 8
    sheet.line(330, y + 20, 17, 11)


def table_of_contents(sheet: Sheet) -> None:
    for row in range(26):
        sheet.line(70, 120 + 20 * row, 78 - row % 2, 11)
        sheet.right_line(525, 120 + 20 * row, 1 if row < 4 else 3, 11)


def index_in_three_columns(sheet: Sheet) -> None:
    for x in (50, 225, 400):
        y = 95.0 + sheet.random.uniform(2, 10)
        while y < 770:
            sheet.line(x, y, sheet.random.randint(9, 24), 9)
            y += 11.7
            if sheet.random.random() < 0.2:
                sheet.line(x + 12, y, sheet.random.randint(8, 16), 9)
                y += 11.7
            if sheet.random.random() < 0.1:
                y += 16


def newspaper_of_four_columns(sheet: Sheet) -> None:
    sheet.centered_line(421, 90, 20, 44)
    for x in (50, 240, 430, 620):
        y = 150 + sheet.random.uniform(0, 6)
        while y < 1000:
            y = sheet.paragraph(x, y + 10, 172, 2, 15, leading=1.15) + 2
            rows = sheet.random.randint(14, 30)
            y = sheet.column(x, y, 172, rows, 9, leading=1.2, is_justified=True)


def two_pages_on_one_sheet(sheet: Sheet) -> None:
    sheet.centered_line(260, 110, 20, 22)
    sheet.column(60, 190, 400, 33, 10.5, leading=1.35)
    sheet.column(540, 60, 400, 42, 10.5, leading=1.35)


def poem(sheet: Sheet) -> None:
    for verse in range(6):
        for row in range(4):
            sheet.centered_line(297, 130 + 82 * verse + 17 * row, sheet.random.randint(20, 50), 12)


def numbered_code(sheet: Sheet) -> None:
    for row in range(38):
        sheet.right_line(78, 100 + 12 * row, 1 if row < 9 else 2, 9)
        indent = 22 * sheet.random.randint(0, 4)
        sheet.line(96 + indent, 100 + 12 * row, sheet.random.randint(8, 30), 9)


def two_languages_side_by_side(sheet: Sheet) -> None:
    for x in (50, 315):
        for part in range(8):
            sheet.paragraph(x, 90 + 90 * part, 230, sheet.random.randint(5, 7), leading=1.2)


def questions_with_hanging_numbers(sheet: Sheet) -> None:
    y = 70.0
    for _ in range(11):
        for rows, step in ((1, 3), (2, 9)):
            sheet.line(60, y, 2, 11)
            y = sheet.paragraph(95, y, 440, rows, 11) + step


def captions_side_by_side(sheet: Sheet) -> None:
    y = sheet.column(50, 60, 495, 12)
    for x, rows in ((50, 2), (220, 3), (390, 2)):
        sheet.paragraph(x, y + 136, 155, rows, 8.5, leading=1.2)
    sheet.column(50, y + 210, 495, 20)


def scenes_of_a_play(sheet: Sheet) -> None:
    y = 70.0
    for _ in range(15):
        sheet.line(60, y, sheet.random.randint(4, 9))
        y = sheet.paragraph(150, y, 380, sheet.random.randint(1, 4), 11) + 6


LAYOUTS: tuple[Callable[[Sheet], None], ...] = (
    two_ragged_columns,
    title_over_three_columns,
    headline_over_two_of_three_columns,
    columns_of_uneven_length,
    picture_in_one_column,
    picture_over_all_columns,
    sidebar_in_smaller_type,
    quotation_between_two_columns,
    notes_at_the_foot_of_each_column,
    header_and_footer,
    table_of_figures,
    table_of_wrapped_cells,
    table_in_one_of_two_columns,
    receipt,
    form_with_two_pairs_a_row,
    letter,
    table_of_contents,
    index_in_three_columns,
    newspaper_of_four_columns,
    two_pages_on_one_sheet,
    poem,
    numbered_code,
    two_languages_side_by_side,
    questions_with_hanging_numbers,
    captions_side_by_side,
    scenes_of_a_play,
)
