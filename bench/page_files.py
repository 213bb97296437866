"""Pages as uncompressed image files, which every peer can read at almost no cost."""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bench.corpus import CorpusFile
from bench.programs.answering import PageRequest
from workers.ocr.page_image import PageFailure
from workers.page_renderer import PageRenderer

_FILE_HEADER: Final = struct.Struct("<2sIHHI")
_INFO_HEADER: Final = struct.Struct("<IiiHHIIiiII")
_ROW_MULTIPLE: Final = 4
_BITS: Final = 24
_DPI_PER_METER: Final = 39.3701


@dataclass(frozen=True, slots=True)
class BenchPage:
    """A page of the benchmark: what programs are asked, its document, and its size."""

    request: PageRequest
    file: CorpusFile
    pixel_count: int


def write_pages(
    files: Sequence[CorpusFile],
    folder: Path,
    renderer: PageRenderer,
    *,
    dpi: float,
    max_pages: int,
    on_file: Callable[[CorpusFile], None],
) -> list[BenchPage]:
    """Render the first pages of each document into a folder.

    Args:
        files: in this order.
        folder: exists.
        renderer: this project's own; a page that it cannot render is nobody's task.
        dpi: of PDF pages.
        max_pages: of each document; 0 for all.
        on_file: told each document before it is rendered.
    """
    pages: list[BenchPage] = []
    for file in files:
        on_file(file)
        count = renderer.open(file.path).page_count
        wanted = range(min(count, len(file.page_texts), max_pages or count))
        for rendered in renderer.pages(wanted, dpi=dpi):
            if isinstance(rendered, PageFailure):
                continue
            image = rendered.image
            path = folder / f"{len(pages):05}.bmp"
            path.write_bytes(bmp(image.pixels, dpi=image.dpi))
            request = PageRequest(
                len(pages), str(path), str(file.path.absolute()), image.page_index, file.language
            )
            pages.append(BenchPage(request, file, image.width_px * image.height_px))
    return pages


def bmp(pixels: NDArray[np.uint8], *, dpi: float) -> bytes:
    """Return a page as a BMP file of 24 bits a pixel.

    Args:
        pixels: (H, W, 3) uint8 RGB, page pixels.
        dpi: for programs that judge sizes by it.
    """
    height, width = pixels.shape[:2]
    row_bytes = -(-width * 3 // _ROW_MULTIPLE) * _ROW_MULTIPLE
    rows = np.zeros((height, row_bytes), dtype=np.uint8)
    rows[:, : width * 3] = pixels[::-1, :, ::-1].reshape(height, width * 3)  # bottom up, BGR
    offset = _FILE_HEADER.size + _INFO_HEADER.size
    per_meter = round(dpi * _DPI_PER_METER)
    return (
        _FILE_HEADER.pack(b"BM", offset + rows.nbytes, 0, 0, offset)
        + _INFO_HEADER.pack(
            _INFO_HEADER.size, width, height, 1, _BITS, 0, rows.nbytes, per_meter, per_meter, 0, 0
        )
        + rows.tobytes()
    )
