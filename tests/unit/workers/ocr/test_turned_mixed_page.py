import numpy as np

from workers.ocr.geometry import Box, Quad
from workers.ocr.mixed_page import masked_crop, merge_recognized
from workers.ocr.page_image import PageImage
from workers.ocr.rendered_page import RenderedPage, from_image
from workers.ocr.result import Block, PageResult, TextLine, Word
from workers.ocr.routing import RouteDecision
from workers.ocr.upright import turned_page


def mixed_page() -> RenderedPage:
    pixels = np.full((300, 400, 3), 255, dtype=np.uint8)
    region = Box(100.0, 50.0, 240.0, 170.0)
    decision = RouteDecision("mixed", "image_regions", (region,))
    return from_image(PageImage(0, pixels, dpi=200.0, rotation_deg=90), decision)


def test_what_was_read_in_a_turned_image_lies_where_the_image_has_it() -> None:
    page = mixed_page()
    crop = masked_crop(page)
    turned = turned_page(crop, 1)
    corners = np.array([(10, 20), (60, 20), (60, 35), (10, 35)], dtype=np.float32)
    line = TextLine("word", Quad(corners), 0.9, 0.8, (Word("word", Box(10, 20, 60, 35)),))
    recognized = PageResult(
        page_index=0,
        width_px=turned.width_px,
        height_px=turned.height_px,
        dpi=200.0,
        rotation_deg=turned.rotation_deg,
        skew_deg=0.0,
        crops_found=1,
        crops_kept=1,
        lines=(line,),
        blocks=(Block((0,)),),
    )

    merged = merge_recognized(page, recognized)

    # The crop begins 8 px outside its region and is 156 x 136 px.
    x, y = 100 - 8, 50 - 8
    expected = [(x + 20, y + 126), (x + 20, y + 76), (x + 35, y + 76), (x + 35, y + 126)]
    (found,) = merged.lines
    assert found.quad.corners.tolist() == [list(corner) for corner in expected]
    assert found.words[0].box == Box(x + 20, y + 76, x + 35, y + 126)
    assert (merged.rotation_deg, merged.width_px, merged.height_px) == (90, 400, 300)
