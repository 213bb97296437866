import numpy as np

from workers.ocr.boxes import Boxes
from workers.ocr.running_text import are_columns


def row(*starts: float) -> Boxes:
    """Lines 100 long and 10 high, side by side."""
    return np.array([(start, 0.0, start + 100, 10.0) for start in starts])


def test_a_gutter_that_one_line_faces_on_each_side_parts_no_table() -> None:
    assert are_columns(row(0, 110, 220), row(340, 450, 560), 10.0, has_tables=True)
