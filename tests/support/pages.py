"""Builders of page results."""

import numpy as np

from workers.ocr.geometry import Box, Quad
from workers.ocr.result import Block, PageResult, StageSeconds, TextLine, Word


def make_line(text: str, *, top: float = 10.0, confidence: float = 0.9) -> TextLine:
    corners = np.array(
        [(10, top), (110.04, top), (110.04, top + 20), (10, top + 20)], dtype=np.float32
    )
    return TextLine(
        text=text,
        quad=Quad(corners),
        confidence=confidence,
        detection_score=0.87654,
        words=tuple(Word(word, Box(10, top, 50.26, top + 20)) for word in text.split()),
    )


def make_page(
    *blocks: list[str], page_index: int = 0, crops_found: int | None = None
) -> PageResult:
    """Make a page whose blocks hold these lines."""
    texts = [text for block in blocks for text in block]
    lines = tuple(make_line(text, top=10.0 + 30 * i) for i, text in enumerate(texts))
    stops = np.cumsum([len(block) for block in blocks]).tolist()
    return PageResult(
        page_index=page_index,
        width_px=1654,
        height_px=2339,
        dpi=200.0,
        rotation_deg=0,
        skew_deg=0.123,
        crops_found=len(texts) if crops_found is None else crops_found,
        crops_kept=len(texts),
        lines=lines,
        blocks=tuple(
            Block(tuple(range(stop - len(block), stop)))
            for block, stop in zip(blocks, stops, strict=True)
        ),
        seconds=StageSeconds(render=0.5, detect=0.25, recognize=1.0),
    )
