"""Small files that are odd in one way each, made here, and what is to become of each."""

import io
import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from tests.support.pdf_files import assemble_pdf, stream

TEXT = "The clerk counted the ledgers twice."
BLANK = ""
_FONT = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
_FORM = b"/Type/XObject/Subtype/Form/BBox[0 0 612 792]"
_WRITING = b"BT /F 24 Tf 72 700 Td (%s) Tj ET" % TEXT.encode()
_MANY_PICTURES = 300


def write_odd_files(folder: Path) -> dict[Path, str]:
    """Write the files; return for each its text, or the code of its error."""
    outcomes = {}
    for name, (content, outcome) in {**_images(), **_pdfs()}.items():
        (folder / name).write_bytes(content)
        outcomes[folder / name] = outcome
    return outcomes


def _images() -> Mapping[str, tuple[bytes, str]]:
    png, jpeg = _saved(_written(), "PNG"), _saved(_written(), "JPEG", progressive=True)
    deep = Image.fromarray(np.asarray(_written().convert("L")).astype(np.uint16) * 257)
    palette = _written().convert("P")
    pictures = [_written(), *[Image.new("RGB", (9, 9), "white")] * (_MANY_PICTURES - 1)]
    return {
        "two\nlines.png": (png, TEXT),
        "100%25 %s [bold].png": (png, TEXT),
        "Größe 名前.png": (png, TEXT),
        "no ending": (png, TEXT),
        "a.pdf": (png, TEXT),
        "one-pixel.png": (_saved(Image.new("RGB", (1, 1)), "PNG"), BLANK),
        "wide.png": (_saved(Image.new("RGB", (30_000, 3), "white"), "PNG"), BLANK),
        "tall.png": (_saved(_noise(30_000, 3), "PNG"), BLANK),
        "black.png": (_saved(Image.new("L", (1_000, 1_000)), "PNG"), BLANK),
        "noise.png": (_saved(_noise(300, 300), "PNG"), BLANK),
        "clear.png": (_saved(Image.new("RGBA", (99, 99)), "PNG"), BLANK),
        "deep.png": (_saved(deep, "PNG"), TEXT),
        "palette.png": (_saved(palette, "PNG", transparency=palette.getpixel((0, 0))), TEXT),
        "huge.png": (_saved(Image.new("1", (65_000, 1_000)), "PNG"), "page_too_large"),
        "moving.png": (
            _saved(_written(), "PNG", save_all=True, append_images=[_noise(160, 700)]),
            "unsupported_media_type",
        ),
        "trailing.jpg": (jpeg + b"\x00garbage" * 5_000, TEXT),
        "cut.jpg": (jpeg[: len(jpeg) * 2 // 3], "damaged"),
        "lossless.webp": (_saved(_written(), "WEBP", lossless=True), TEXT),
        "run-lengths.bmp": (_run_length_bmp(_written()), TEXT),
        "pictures.tiff": (
            _saved(pictures[0], "TIFF", save_all=True, append_images=pictures[1:]),
            TEXT + "\f" * (_MANY_PICTURES - 1),
        ),
    }


def _pdfs() -> Mapping[str, tuple[bytes, str]]:
    boxes = {
        "inverted": b"[612 792 0 0]",
        "huge": b"[0 0 1e9 1e9]",
        "infinite": b"[0 0 1e400 1e400]",
        "no-number": b"[0 0 NaN NaN]",
        "empty": b"[0 0 0 0]",
        "no": b"null",
    }
    page_tree = b"<</Type/Pages/Kids[]/Count 0>>"
    return {
        **{f"{name}-box.pdf": (_one_page(box=box), TEXT) for name, box in boxes.items()},
        "elsewhere.pdf": (_one_page(box=b"[-500 -500 112 292]"), BLANK),
        "thread.pdf": (_one_page(box=b"[0 0 14400 0.01]"), BLANK),
        "units.pdf": (_one_page(entries=b"/UserUnit 1000000"), "page_too_large"),
        "no-pages.pdf": (assemble_pdf([b"<</Type/Catalog/Pages 2 0 R>>", page_tree]), "empty"),
        "nested.pdf": (_nested_forms(20), TEXT),
        "nested-200.pdf": (_nested_forms(200), "damaged"),
        "in-itself.pdf": (
            _one_page(b"/X Do " + _WRITING, forms=[_form(6, b"/X Do")]),
            TEXT,
        ),
        "saved-states.pdf": (_one_page(b"q " * 100_000 + _WRITING), "damaged"),
        "brackets.pdf": (_one_page(b"[" * 100_000), "damaged"),
        "unpacks.pdf": (_one_page(b" " * 50_000_000 + _WRITING), TEXT),
    }


def _written() -> Image.Image:
    image = Image.new("RGB", (700, 160), "white")
    ImageDraw.Draw(image).text((30, 50), TEXT, font=ImageFont.load_default(32), fill="black")
    return image


def _noise(height_px: int, width_px: int) -> Image.Image:
    levels = np.random.default_rng(1).integers(0, 256, (height_px, width_px, 3), np.uint8)
    return Image.fromarray(levels)


def _saved(image: Image.Image, file_format: str, **options: object) -> bytes:
    content = io.BytesIO()
    image.save(content, file_format, **options)
    return content.getvalue()


def _run_length_bmp(image: Image.Image) -> bytes:
    """Return the image in grey as a BMP of run lengths, which Pillow reads and does not write."""
    rows = np.asarray(image.convert("L"))[::-1]
    body = b"".join(_run_lengths(row) + b"\0\0" for row in rows) + b"\0\1"
    palette = b"".join(bytes([level, level, level, 0]) for level in range(256))
    pixels_at = 14 + 40 + len(palette)
    size = struct.pack("<iiHH", image.width, image.height, 1, 8)
    header = struct.pack("<I", 40) + size + struct.pack("<IIiiII", 1, len(body), 2835, 2835, 256, 0)
    file_header = b"BM" + struct.pack("<IHHI", pixels_at + len(body), 0, 0, pixels_at)
    return file_header + header + palette + body


def _run_lengths(row: np.ndarray) -> bytes:
    starts = np.flatnonzero(np.diff(row, prepend=row[0] ^ 1))
    lengths = np.diff(starts, append=row.size)
    return b"".join(
        bytes([min(length - done, 255), row[start]])
        for start, length in zip(starts, lengths, strict=True)
        for done in range(0, length, 255)
    )


def _one_page(
    content: bytes = _WRITING,
    *,
    box: bytes = b"[0 0 612 792]",
    entries: bytes = b"",
    forms: list[bytes] | None = None,
) -> bytes:
    resources = b"<</Font<</F 5 0 R>>/XObject<</X 6 0 R>>>>"
    return assemble_pdf([
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox %s/Contents 4 0 R/Resources %s%s>>"
        % (box, resources, entries),
        stream(b"", content),
        _FONT,
        *(forms or []),
    ])


def _form(inner: int, content: bytes) -> bytes:
    resources = b"/Resources<</Font<</F 5 0 R>>/XObject<</X %d 0 R>>>>" % inner
    return stream(_FORM + resources, content)


def _nested_forms(depth: int) -> bytes:
    outer = [_form(7 + level, b"/X Do") for level in range(depth - 1)]
    return _one_page(b"/X Do", forms=[*outer, _form(6, _WRITING)])
