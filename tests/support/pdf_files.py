"""Small PDFs, written object by object where no library would write such a thing."""

import io
import random
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import pymupdf

LAUGHS_PER_LEVEL = 10
_BLOCK_BYTES = 2**20


def assemble_pdf(objects: Sequence[bytes]) -> bytes:
    """Return a PDF of these objects, numbered from 1; the first is the catalog."""
    pdf = io.BytesIO()
    offsets = _write_objects(pdf, objects)
    _write_end(pdf, offsets)
    return pdf.getvalue()


def large_pdf(path: Path, line: str, *, size_bytes: int, is_random: bool = False) -> None:
    """Write a PDF of about this size: a page that states one line, and an object nobody needs.

    That object is zeros, which a file system keeps for nothing, or what nothing packs.
    """
    content = b"BT /F 12 Tf 20 60 Td (%s) Tj ET" % line.encode("ascii")
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Count 1/Kids[3 0 R]>>",
        (
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 100]/Contents 4 0 R"
            b"/Resources<</Font<</F 5 0 R>>>>>>"
        ),
        b"<</Length %d>>stream\n%s\nendstream" % (len(content), content),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    with path.open("wb") as pdf:
        offsets = _write_objects(pdf, objects)
        offsets.append(pdf.tell())
        pdf.write(b"%d 0 obj\n<</Length %d>>stream\n" % (len(offsets), size_bytes))
        if is_random:
            noise = random.Random(line)  # noqa: S311 - no secret
            for start in range(0, size_bytes, _BLOCK_BYTES):
                pdf.write(noise.randbytes(min(_BLOCK_BYTES, size_bytes - start)))
        else:
            pdf.seek(size_bytes, io.SEEK_CUR)
        pdf.write(b"\nendstream\nendobj\n")
        _write_end(pdf, offsets)


def _write_objects(pdf: IO[bytes], objects: Sequence[bytes]) -> list[int]:
    """Write the head and these objects; return where each begins."""
    pdf.write(b"%PDF-1.7\n")
    offsets = []
    for number, body in enumerate(objects, start=1):
        offsets.append(pdf.tell())
        pdf.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    return offsets


def _write_end(pdf: IO[bytes], offsets: Sequence[int]) -> None:
    xref_at = pdf.tell()
    pdf.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(offsets) + 1))
    pdf.writelines(b"%010d 00000 n \n" % offset for offset in offsets)
    pdf.write(
        b"trailer\n<</Root 1 0 R/Size %d>>\nstartxref\n%d\n%%%%EOF\n" % (len(offsets) + 1, xref_at)
    )


def stream(dictionary: bytes, content: bytes) -> bytes:
    """Return a Flate stream object with these entries in its dictionary."""
    packed = zlib.compress(content, 9)
    return b"<<%s/Filter/FlateDecode/Length %d>>stream\n%s\nendstream" % (
        dictionary,
        len(packed),
        packed,
    )


def grey_pages(levels: Sequence[int], *, size_pt: tuple[int, int] = (72, 72)) -> bytes:
    """Return a PDF whose pages are filled with one grey each, 0 to 255, to tell them apart."""
    document = pymupdf.open()
    for level in levels:
        page = document.new_page(width=size_pt[0], height=size_pt[1])
        page.draw_rect(page.rect, color=None, fill=(level / 255,) * 3)
    content: bytes = document.tobytes()
    return content


def slow_page_pdf(*, levels: int, plain_pages: int = 2) -> bytes:
    """Return plain pages around one, page index 1, that draws 10 ** ``levels`` rectangles."""
    page_count = plain_pages + 1
    page_numbers = range(3, 3 + page_count)
    first_form = 3 + page_count
    kids = b" ".join(b"%d 0 R" % number for number in page_numbers)
    pages = [b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 72 72]>>" for _ in range(page_count)]
    pages[1] = (
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 72 72]/Resources<</XObject<</F %d 0 R>>>>"
        b"/Contents %d 0 R>>" % (first_form, first_form + levels + 1)
    )
    form = b"/Type/XObject/Subtype/Form/BBox[0 0 72 72]"
    forms = [
        stream(
            form + b"/Resources<</XObject<</F %d 0 R>>>>" % (first_form + level + 1),
            b"/F Do " * LAUGHS_PER_LEVEL,
        )
        for level in range(levels)
    ]
    return assemble_pdf([
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Count %d/Kids[%s]>>" % (page_count, kids),
        *pages,
        *forms,
        stream(form, b"0 0 9 9 re f"),
        stream(b"", b"/F Do"),
    ])


def page_tree_pdf(*, branch_counts: tuple[str, str], root_count: str) -> bytes:
    """Return a PDF of three pages on one branch and two on the other, wherever counts say else.

    The pages are 10, 20, 30, 40 and 50 pt wide, to tell them apart.
    """
    pages = [
        b"<</Type/Page/Parent %d 0 R/MediaBox[0 0 %d 72]>>" % (branch, width_pt)
        for branch, width_pt in ((3, 10), (3, 20), (3, 30), (4, 40), (4, 50))
    ]
    branches = [
        b"<</Type/Pages/Parent 2 0 R/Kids[%s]%s>>" % (kids, count.encode())
        for kids, count in zip((b"5 0 R 6 0 R 7 0 R", b"8 0 R 9 0 R"), branch_counts, strict=True)
    ]
    return assemble_pdf([
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R 4 0 R]%s>>" % root_count.encode(),
        *branches,
        *pages,
    ])
