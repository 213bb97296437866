"""The golden check: models that load and still read nonsense are found out before they work.

A wrong charset of the right length, a channel order, a threshold, a runtime's optimization or a
device's arithmetic shows in no shape and raises no error; a page whose text is known shows it.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, Protocol

import cv2
import numpy as np

from workers.ocr.bundle import ModelBundle, sha256_of
from workers.ocr.errors import ModelFileError
from workers.ocr.page_image import PageFailure, PageImage
from workers.ocr.result import PageResult

# Digits and Latin letters, which the charset of every published PP-OCR recognizer has.
GOLDEN_LINES: Final = ("Harbour ledger 1911", "Kestrel carried 48 barrels", "Paid 2065.37")
# Every recognizer that was tried, v5 and v6, tiny and small, reads the page without an error; one
# wrong character in six means that something does not fit.
MAX_ERROR_RATE: Final = 0.15
_DPI: Final = 150.0
_SIZE_PX: Final = (220, 760)  # height, width
_LINE_PX: Final = 60
_MARGIN_PX: Final = 40
_TYPE_SCALE: Final = 1.1
_STROKE_PX: Final = 2


class PageReader(Protocol):
    """What is checked; ``workers.ocr.engine.OcrEngine`` is one."""

    def read_pages(
        self, pages: Iterable[PageImage | PageFailure]
    ) -> Iterator[PageResult | PageFailure]: ...


def check_golden(reader: PageReader, bundle: ModelBundle) -> None:
    """Read a page whose text is known: the bundle's own, else one that is drawn here.

    Raises:
        ModelFileError: the text is not what stands on the page.
    """
    page, expected = _golden_page(bundle)
    (outcome,) = reader.read_pages([page])
    if isinstance(outcome, PageFailure):
        raise ModelFileError(
            f"{bundle.manifest.name} cannot read its golden page: {outcome.message}"
        )
    read = " ".join(line.text for line in outcome.lines)
    rate = _error_rate(expected, read)
    if rate > MAX_ERROR_RATE:
        raise ModelFileError(
            f"{bundle.manifest.name} misreads its golden page ({rate:.0%} of the characters):"
            f" expected {expected!r}, got {read!r}; charset, mean, std and crop height must be"
            " those that the models were trained with"
        )


def drawn_page() -> PageImage:
    """Return the page of ``GOLDEN_LINES``: black strokes on white, the same pixels every time."""
    pixels = np.full((*_SIZE_PX, 3), 255, dtype=np.uint8)
    for row, text in enumerate(GOLDEN_LINES, start=1):
        cv2.putText(
            pixels,
            text,
            (_MARGIN_PX, row * _LINE_PX),
            cv2.FONT_HERSHEY_SIMPLEX,
            _TYPE_SCALE,
            (0, 0, 0),
            _STROKE_PX,
            cv2.LINE_AA,
        )
    return PageImage(0, pixels, dpi=_DPI)


def _golden_page(bundle: ModelBundle) -> tuple[PageImage, str]:
    golden = bundle.manifest.golden
    if golden is None:
        return drawn_page(), " ".join(GOLDEN_LINES)
    return _decoded(bundle.models_dir / golden.image.name, golden.image.sha256), golden.text


def _decoded(path: Path, sha256: str) -> PageImage:
    if not path.is_file() or sha256_of(path) != sha256:
        raise ModelFileError(f"the golden page {path} is missing, or its SHA-256 is another")
    decoded = cv2.imdecode(np.fromfile(path, dtype=np.uint8), cv2.IMREAD_COLOR)
    if decoded is None:
        raise ModelFileError(f"the golden page {path} is no image that can be read")
    pixels = np.ascontiguousarray(decoded[:, :, ::-1], dtype=np.uint8)
    return PageImage(0, pixels, dpi=_DPI)


def _error_rate(expected: str, read: str) -> float:
    """Return edit distance over the expected length, white space aside: spaces are lost easily."""
    wanted, found = ("".join(text.split()) for text in (expected, read))
    distances = list(range(len(found) + 1))
    for row, character in enumerate(wanted, start=1):
        diagonal, distances[0] = distances[0], row
        for column, other in enumerate(found, start=1):
            best = min(distances[column] + 1, distances[column - 1] + 1)
            diagonal, distances[column] = (
                distances[column],
                min(best, diagonal + (character != other)),
            )
    return distances[-1] / max(len(wanted), 1)
