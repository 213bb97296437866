"""hOCR 1.2, as well-formed XHTML: page, area, paragraph, line and word, each inside its parent."""

import math
from collections.abc import Iterable, Iterator
from typing import Final

from workers.ocr.exports.escaping import hocr_string, xml_text
from workers.ocr.exports.page_view import (
    Box,
    ExportBlock,
    ExportLine,
    Header,
    Page,
    blocks_of,
    is_failed,
    notices,
)
from workers.ocr.page_numbers import page_index
from workers.ocr.right_to_left import is_right_to_left

_HEAD: Final = """\
<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Transitional//EN" \
"http://www.w3.org/TR/xhtml1/DTD/xhtml1-transitional.dtd">
<html xmlns="http://www.w3.org/1999/xhtml">
<head>
<title>{title}</title>
<meta http-equiv="Content-Type" content="text/html; charset=utf-8"/>
<meta name="ocr-system" content="{system}"/>
<meta name="ocr-capabilities" content="ocr_page ocr_carea ocr_par ocr_line ocrx_word ocrp_wconf"/>
<meta name="ocr-number-of-pages" content="{page_count}"/>
</head>
<body>
"""
# Lines that run less steeply have a baseline, the others an angle: hOCR has no baseline for them.
_STEEP_DEG: Final = 45


def hocr(header: Header, pages: Iterable[Page]) -> Iterator[str]:
    """Yield the document, a page a part. ``x_wconf`` of a word is that of its line, in percent."""
    yield _HEAD.format(
        title=xml_text(header["source"]["filename"]),
        system=xml_text(f"Pagefleet {header['model_version'] or ''}".strip()),
        page_count=header["usage"]["pages"],
    )
    for page in pages:
        yield "".join(_page(header, page))
    yield "</body>\n</html>\n"


def _page(header: Header, page: Page) -> Iterator[str]:
    number = page["page_number"]
    width, height = (0, 0) if is_failed(page) else (page["width_px"], page["height_px"])
    title = f'image "{hocr_string(header["source"]["filename"])}"'
    title += f"; bbox 0 0 {width} {height}; ppageno {page_index(number)}"
    if not is_failed(page):
        title += f"; scan_res {page['dpi']:g} {page['dpi']:g}"
    yield f'<div class="ocr_page" id="page_{number}" title=\'{title}\'>\n'
    for notice in notices(page):
        yield f'<p class="pagefleet_notice">{xml_text(notice)}</p>\n'
    for block in blocks_of(page):
        yield from _block(block, number, (width, height))
    yield "</div>\n"


def _block(block: ExportBlock, number: int, size: tuple[int, int]) -> Iterator[str]:
    bbox = _bbox(block.box, size)
    name = f"{number}_{block.id}"
    yield f'<div class="ocr_carea" id="block_{name}" title="{bbox}">\n'
    yield f'<p class="ocr_par" id="par_{name}" title="{bbox}">\n'
    for line in block.lines:
        yield from _line(line, number, size)
    yield "</p>\n</div>\n"


def _line(line: ExportLine, number: int, size: tuple[int, int]) -> Iterator[str]:
    name = f"{number}_{line.id}"
    direction = ' dir="rtl"' if is_right_to_left(line.text) else ""
    title = "; ".join([_bbox(line.box, size), *_slope(line, size)])
    yield f'<span class="ocr_line" id="line_{name}" title="{title}"{direction}>'
    confidence = round(100 * line.confidence)
    for place, word in enumerate(line.words):
        yield f'<span class="ocrx_word" id="word_{name}_{place}"'
        yield f' title="{_bbox(word.box, size)}; x_wconf {confidence}">{xml_text(word.text)}</span>'
        yield " " if word.is_spaced else ""
    yield "</span>\n"


def _slope(line: ExportLine, size: tuple[int, int]) -> Iterator[str]:
    """Yield how a line runs: its baseline, or the angle of one that runs down or up.

    hOCR measures a baseline from the lower left corner of the line's box, and counts angles
    against the clock.
    """
    top_left, top_right, bottom_right, bottom_left = line.polygon
    angle = math.degrees(math.atan2(top_right[1] - top_left[1], top_right[0] - top_left[0]))
    if abs(angle) > _STEEP_DEG:
        yield f"textangle {-angle % 360:.4g}"
        return
    run = bottom_right[0] - bottom_left[0]
    slope = (bottom_right[1] - bottom_left[1]) / run if run > 0 else 0.0
    left, _, _, bottom = _integers(line.box, size)
    at_left = bottom_left[1] + slope * (left - bottom_left[0]) - bottom
    yield f"baseline {slope:.4f} {at_left:.1f}"


def _bbox(box: Box, size: tuple[int, int]) -> str:
    return "bbox {} {} {} {}".format(*_integers(box, size))


def _integers(box: Box, size: tuple[int, int]) -> tuple[int, int, int, int]:
    """Round outwards, so that what lies in a box still does, and keep to the page."""
    width, height = size
    return (
        min(max(math.floor(box[0]), 0), width),
        min(max(math.floor(box[1]), 0), height),
        min(max(math.ceil(box[2]), 0), width),
        min(max(math.ceil(box[3]), 0), height),
    )
