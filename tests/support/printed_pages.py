"""Pages with known text, printed with Pillow's own font so that they are the same everywhere."""

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from workers.ocr.page_image import PageImage

PROSE = (
    "The clerk counted the ledgers twice before noon.",
    "Rain had come in under the door, and the lower",
    "shelf was wet; 14 volumes were moved to the attic.",
    "On Friday, June 3, the bill came to $1,208.50 in",
    "all, of which the parish paid one third.",
    "Nobody could say who had left the window open.",
)


def print_page(
    lines: tuple[str, ...] = PROSE,
    *,
    page_index: int = 0,
    size_px: int = 32,
    width_px: int = 1000,
    top_px: int = 60,
    line_step: float = 1.6,
) -> PageImage:
    """Print lines in black on white, from the top left.

    Args:
        lines: what is printed.
        page_index: of the page.
        size_px: of the font.
        width_px: of the page.
        top_px: where the first line begins.
        line_step: from line to line, in font sizes.
    """
    step_px = round(size_px * line_step)
    image = Image.new("RGB", (width_px, 2 * top_px + step_px * len(lines)), "white")
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(size_px)
    for row, line in enumerate(lines):
        draw.text((60, top_px + step_px * row), line, font=font, fill="black")
    return PageImage(page_index, np.asarray(image), dpi=200.0)
