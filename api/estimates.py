"""Guesses of a document's pages and pixels, before anybody has opened it.

They only have to be right on average: the split counts, and sets them right.
"""

from workers.ocr.formats import MediaType

# Half of the 58 PDFs of the test corpus have more bytes a page, half of them fewer.
PDF_BYTES_PER_PAGE = 50_000
# Black and white pages of a scanner have a few tens of KB, gray and color ones up to megabytes.
TIFF_BYTES_PER_PAGE = 200_000
# A4; the pages of the corpus have 86 to 97 in the middle half.
PAGE_SQUARE_INCHES = 96.7


def guess_pages(media_type: MediaType, size_bytes: int, *, max_pages: int) -> int:
    """Return how many pages a file of this type and size may have: at least 1."""
    bytes_per_page = {
        MediaType.PDF: PDF_BYTES_PER_PAGE,
        MediaType.TIFF: TIFF_BYTES_PER_PAGE,
    }.get(media_type)
    if bytes_per_page is None:
        return 1
    return min(max(round(size_bytes / bytes_per_page), 1), max_pages)


def guess_page_pixels(image_pixels: int | None, *, dpi: int, max_pixels: int) -> int:
    """Return how many pixels a page may have.

    Args:
        image_pixels: what an image states at its beginning; None: nothing, or it is no image.
        dpi: at which pages are rendered.
        max_pixels: the most that a page image may have.
    """
    return min(image_pixels or round(PAGE_SQUARE_INCHES * dpi * dpi), max_pixels)
