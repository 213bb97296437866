"""PDF pages that are images with hidden text, written one by one: nothing of a page is kept."""

import zlib
from dataclasses import dataclass
from typing import BinaryIO, Final

from workers.ocr.exports.glyphless_font import (
    FONT_NAME,
    FONT_OBJECT_COUNT,
    GlyphCodes,
    font_objects,
)
from workers.ocr.exports.invisible_text import hidden_text
from workers.ocr.exports.page_view import Page
from workers.ocr.exports.pdf_facts import info_entries

_PT_PER_INCH: Final = 72
_MAX_SIDE_PT: Final = 14_400.0  # of a page, by the standard's implementation limits
_A4_PT: Final = (595.0, 842.0)
# The first objects; the font has those from _FONT on.
_CATALOG, _PAGES, _INFO, _FONT = 1, 2, 3, 4
_FONT_CMAP: Final = _FONT + FONT_OBJECT_COUNT - 1
_FIRST_FREE: Final = _FONT_CMAP + 1


@dataclass(frozen=True, slots=True)
class EncodedImage:
    """A page image as it stands in a PDF.

    Attributes:
        content: the packed samples.
        filter_name: how they are packed, such as ``DCTDecode``.
        color_space: ``DeviceGray`` or ``DeviceRGB``.
        bits: of a component.
        width_px: in samples.
        height_px: likewise.
    """

    content: bytes
    filter_name: str
    color_space: str
    bits: int
    width_px: int
    height_px: int


class ImagePdfWriter:
    """Writes a PDF of page images to a file; ``finish`` makes it whole."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._place = 0
        self._offsets: dict[int, int] = {}
        self._codes = GlyphCodes()
        self._pages: list[int] = []
        self._next = _FIRST_FREE
        self._put(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
        for number, (dictionary, content) in enumerate(font_objects(_FONT), start=_FONT):
            self._object(number, dictionary, content)

    def add_image(self, image: EncodedImage, page: Page) -> None:
        """Add a page: its image, whole, and its words under it.

        Args:
            image: of the upright page, in whatever resolution.
            page: its page object.
        """
        scale = _PT_PER_INCH / page["dpi"]
        longest = max(page["width_px"], page["height_px"])
        scale = min(scale, _MAX_SIDE_PT / longest)
        width, height = page["width_px"] * scale, page["height_px"] * scale
        drawn = f"q {width:.3f} 0 0 {height:.3f} 0 0 cm /Page Do Q\n".encode()
        words = hidden_text(page, (scale, 0, 0, -scale, 0, height), self._codes)
        image_number = self._take_number()
        self._object(
            image_number,
            f"<</Type/XObject/Subtype/Image/Width {image.width_px}/Height {image.height_px}"
            f"/ColorSpace/{image.color_space}/BitsPerComponent {image.bits}"
            f"/Filter/{image.filter_name}/Length {len(image.content)}>>",
            image.content,
        )
        self._page(
            (width, height),
            f"/XObject<</Page {image_number} 0 R>>/Font<</{FONT_NAME} {_FONT} 0 R>>",
            drawn + words,
        )

    def add_notice(self, sentence: str) -> None:
        """Add a page that shows a sentence, in place of one that cannot be shown."""
        width, height = _A4_PT
        shown = sentence.encode("ascii", "replace").decode()
        lines = [shown[start : start + 80] for start in range(0, len(shown), 80)]
        rows = " T* ".join(f"<{line.encode().hex()}> Tj" for line in lines)
        content = f"BT /Plain 11 Tf 14 TL 50 {height - 80:g} Td {rows} ET\n".encode()
        font = "/Font<</Plain<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>"
        self._page((width, height), font, content)

    def finish(self, facts: dict[str, str]) -> None:
        """Write what stands at the end of the file; nothing can be added any more.

        Args:
            facts: about the document, for its information dictionary.
        """
        packed = zlib.compress(self._codes.to_unicode())
        self._object(_FONT_CMAP, f"<</Filter/FlateDecode/Length {len(packed)}>>", packed)
        kids = " ".join(f"{number} 0 R" for number in self._pages)
        self._object(_PAGES, f"<</Type/Pages/Count {len(self._pages)}/Kids[{kids}]>>")
        self._object(_CATALOG, f"<</Type/Catalog/Pages {_PAGES} 0 R>>")
        entries = "".join(f"/{key}{value}" for key, value in info_entries(facts).items())
        self._object(_INFO, f"<<{entries}>>")
        start = self._place
        self._put(f"xref\n0 {self._next}\n0000000000 65535 f \n".encode())
        for number in range(1, self._next):
            self._put(f"{self._offsets[number]:010d} 00000 n \n".encode())
        self._put(
            f"trailer\n<</Size {self._next}/Root {_CATALOG} 0 R/Info {_INFO} 0 R>>\n"
            f"startxref\n{start}\n%%EOF\n".encode()
        )
        self._file.flush()

    def _page(self, size: tuple[float, float], resources: str, content: bytes) -> None:
        packed = zlib.compress(content)
        content_number, page_number = self._take_number(), self._take_number()
        self._object(content_number, f"<</Filter/FlateDecode/Length {len(packed)}>>", packed)
        self._object(
            page_number,
            f"<</Type/Page/Parent {_PAGES} 0 R/MediaBox[0 0 {size[0]:.3f} {size[1]:.3f}]"
            f"/Resources<<{resources}>>/Contents {content_number} 0 R>>",
        )
        self._pages.append(page_number)

    def _take_number(self) -> int:
        self._next += 1
        return self._next - 1

    def _object(self, number: int, dictionary: str, content: bytes | None = None) -> None:
        self._offsets[number] = self._place
        self._put(f"{number} 0 obj\n{dictionary}\n".encode())
        if content is not None:
            self._put(b"stream\n" + content + b"\nendstream\n")
        self._put(b"endobj\n")

    def _put(self, part: bytes) -> None:
        self._file.write(part)
        self._place += len(part)
