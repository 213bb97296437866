"""Hidden text put into the pages of a PDF, which stay as they are.

A part of the door to PyMuPDF, beside ``workers.ocr.pdf``: for hostile files, so only in a child.
"""

import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pymupdf
from pymupdf import mupdf

from workers.ocr.errors import DamagedPageError
from workers.ocr.exports.glyphless_font import (
    FONT_NAME,
    FONT_OBJECT_COUNT,
    GlyphCodes,
    font_objects,
)
from workers.ocr.exports.invisible_text import Matrix, hidden_text
from workers.ocr.exports.page_view import Box, ExportWord, Page
from workers.ocr.exports.pdf_facts import info_entries
from workers.ocr.page_numbers import page_index
from workers.ocr.pdf import PdfSource, structured_text, translated
from workers.ocr.text_layer import MAX_LAYER_CHARACTERS

_CELL_PX: Final = 64


class SearchablePdf(PdfSource):
    """A PDF that gets its words, page by page, and is written anew at the end."""

    def __init__(self, path: Path, *, password: str | None = None) -> None:
        """Open the file; see ``PdfSource``."""
        super().__init__(path, password=password)
        self._codes = GlyphCodes()
        self._font_xref = 0

    def add_text(self, page: Page) -> None:
        """Put the words of a page object under its page.

        A page whose text was taken from the file has them already, and is left alone; so is each
        word that the page states at its place.

        Raises:
            DamagedPageError: MuPDF cannot load the page, or change it.
            MemoryError: MuPDF could not allocate.
        """
        if page["state"] != "ok" or page["route"] == "text":
            return
        with translated():
            loaded = self._load(page_index(page["page_number"]))
            to_upright = _to_upright(page, loaded)
            operators = hidden_text(
                page,
                _in_user_space(to_upright, loaded),
                self._codes,
                is_stated=_stated_words(loaded, to_upright),
            )
            if operators:
                self._prepend(loaded, operators)

    def can_append(self) -> bool:
        """Whether the changes can be appended to the file, every byte of which then stays."""
        return bool(mupdf.pdf_can_be_saved_incrementally(self._pdf()))

    def append_to(self, path: Path, facts: Mapping[str, str]) -> None:
        """Append the changes to a copy of the file.

        Raises:
            DamagedPageError: MuPDF cannot write them.
            MemoryError: MuPDF could not allocate.
        """
        with translated():
            self._finish(facts)
            options = mupdf.PdfWriteOptions()
            options.do_incremental = 1
            options.do_encrypt = mupdf.PDF_ENCRYPT_KEEP
            mupdf.pdf_save_document(self._pdf(), str(path), options)

    def write_to(self, path: Path, facts: Mapping[str, str], *, pages: range | None = None) -> None:
        """Write a file of its own, of all pages or of those with these numbers.

        Args:
            path: an empty file.
            facts: for the information dictionary.
            pages: page numbers; None for all. A page that the file counts and does not hold is
                left out.

        Raises:
            DamagedPageError: MuPDF cannot write it, or it holds none of the pages.
            MemoryError: MuPDF could not allocate.
        """
        held = None
        if pages is not None:
            held = [page_index(number) for number in pages if self._holds(number)]
        if held == []:
            raise DamagedPageError("The file holds none of the pages.")
        with translated():
            self._finish(facts)
            if held is not None:
                self._document.select(held)
            options = mupdf.PdfWriteOptions()
            options.do_garbage = 0 if pages is None else 1
            options.do_encrypt = mupdf.PDF_ENCRYPT_KEEP
            self._write(path, options)

    def unlock_to(self, path: Path) -> None:
        """Write the file as it is into an empty one, but without its encryption.

        Raises:
            DamagedPageError: MuPDF cannot write it.
            MemoryError: MuPDF could not allocate.
        """
        with translated():
            options = mupdf.PdfWriteOptions()
            options.do_encrypt = mupdf.PDF_ENCRYPT_NONE
            self._write(path, options)

    def _write(self, path: Path, options: mupdf.PdfWriteOptions) -> None:
        # Appending to an empty file, since MuPDF would remove it first to write it anew.
        output = mupdf.FzOutput(str(path), 1)
        mupdf.pdf_write_document(self._pdf(), output, options)
        output.fz_close_output()

    def _holds(self, number: int) -> bool:
        try:
            with translated():
                self._load(page_index(number))
        except DamagedPageError:
            return False
        return True

    def _pdf(self) -> mupdf.PdfDocument:
        return mupdf.pdf_document_from_fz_document(self._document.this)

    def _finish(self, facts: Mapping[str, str]) -> None:
        document = self._document
        if self._font_xref:
            document.update_stream(
                self._font_xref + FONT_OBJECT_COUNT - 1, self._codes.to_unicode(), new=True
            )
        kind, value = document.xref_get_key(-1, "Info")
        if kind == "xref":
            info = int(value.split()[0])
        else:
            info = document.get_new_xref()
            document.update_object(info, "<<>>")
            document.xref_set_key(-1, "Info", f"{info} 0 R")
        for key, entry in info_entries(facts).items():
            document.xref_set_key(info, key, entry)

    def _font(self) -> int:
        """Return the number of the font's object, making it when it is first wanted."""
        if not self._font_xref:
            document = self._document
            numbers = [document.get_new_xref() for _ in range(FONT_OBJECT_COUNT)]
            self._font_xref = numbers[0]
            for number, (dictionary, content) in zip(
                numbers, [*font_objects(numbers[0]), ("<<>>", None)], strict=True
            ):
                document.update_object(number, dictionary)
                if content is not None:
                    document.xref_set_key(number, "Filter", "null")
                    document.update_stream(number, _unpacked(dictionary, content), new=True)
        return self._font_xref

    def _prepend(self, page: pymupdf.Page, operators: bytes) -> None:
        """Put operators before the page's own, which leave the graphics state as they like."""
        document = self._document
        stream = document.get_new_xref()
        document.update_object(stream, "<<>>")
        document.update_stream(stream, operators, new=True)
        pdf = self._pdf()
        page_object = mupdf.pdf_page_from_fz_page(page.this).obj()
        contents = mupdf.pdf_new_array(pdf, 4)
        mupdf.pdf_array_push(contents, mupdf.pdf_new_indirect(pdf, stream, 0))
        own = mupdf.pdf_dict_gets(page_object, "Contents")
        if mupdf.pdf_is_array(own):
            for index in range(mupdf.pdf_array_len(own)):
                mupdf.pdf_array_push(contents, mupdf.pdf_array_get(own, index))
        elif own.m_internal:
            mupdf.pdf_array_push(contents, own)
        mupdf.pdf_dict_puts(page_object, "Contents", contents)
        # Resources may be inherited, or shared with other pages: the page gets its own.
        resources = _own_copy(pdf, mupdf.pdf_page_resources(mupdf.pdf_page_from_fz_page(page.this)))
        fonts = _own_copy(pdf, mupdf.pdf_dict_gets(resources, "Font"))
        font = mupdf.pdf_new_indirect(pdf, self._font(), 0)
        mupdf.pdf_dict_puts(fonts, FONT_NAME, font)
        mupdf.pdf_dict_puts(resources, "Font", fonts)
        mupdf.pdf_dict_puts(page_object, "Resources", resources)


def _unpacked(dictionary: str, content: bytes) -> bytes:
    return zlib.decompress(content) if "/Filter/FlateDecode" in dictionary else content


def _own_copy(pdf: mupdf.PdfDocument, stated: mupdf.PdfObj) -> mupdf.PdfObj:
    if stated.m_internal and mupdf.pdf_is_dict(stated):
        return mupdf.pdf_copy_dict(stated)
    return mupdf.pdf_new_dict(pdf, 4)


def _to_upright(page: Page, loaded: pymupdf.Page) -> pymupdf.Matrix:
    """Return the way from pixels of the page image to points of the page as it is shown.

    The page may have been turned further than its /Rotate says, where its text lay on its side.
    """
    turn = (page["rotation_deg"] - loaded.rotation) % 360
    width, height = float(page["width_px"]), float(page["height_px"])
    # How far clockwise the image was turned is undone.
    undone = {
        0: pymupdf.Matrix(1, 0, 0, 1, 0, 0),
        90: pymupdf.Matrix(0, -1, 1, 0, 0, width),
        180: pymupdf.Matrix(-1, 0, 0, -1, width, height),
        270: pymupdf.Matrix(0, 1, -1, 0, height, 0),
    }[turn]
    if turn % 180:
        width, height = height, width
    scale = pymupdf.Matrix(loaded.rect.width / width, loaded.rect.height / height)
    found: pymupdf.Matrix = undone * scale
    return found


def _in_user_space(to_upright: pymupdf.Matrix, loaded: pymupdf.Page) -> Matrix:
    box, shown = mupdf.FzRect(), mupdf.FzMatrix()
    mupdf.pdf_page_transform(mupdf.pdf_page_from_fz_page(loaded.this), box, shown)
    from_user = pymupdf.Matrix(shown.a, shown.b, shown.c, shown.d, shown.e, shown.f)
    if not from_user.a * from_user.d - from_user.b * from_user.c:
        raise DamagedPageError("The page has no size.")
    found = to_upright * ~from_user
    values: Matrix = (found.a, found.b, found.c, found.d, found.e, found.f)
    return values


def _stated_words(loaded: pymupdf.Page, to_upright: pymupdf.Matrix) -> Callable[[ExportWord], bool]:
    """Return what tells whether a page states a word at its place: all its letters lie there."""
    text = structured_text(loaded)
    if len(text.extractText()) > MAX_LAYER_CHARACTERS:
        return lambda _: False
    back = ~to_upright
    letters: dict[tuple[int, int], list[tuple[str, float, float]]] = {}
    for block in text.extractRAWDICT()["blocks"]:
        for line in block.get("lines", ()):
            for span in line["spans"]:
                for character in span["chars"]:
                    place = pymupdf.Rect(character["bbox"]) * back
                    x, y = (place.x0 + place.x1) / 2, (place.y0 + place.y1) / 2
                    cell = int(x // _CELL_PX), int(y // _CELL_PX)
                    letters.setdefault(cell, []).append((character["c"], x, y))
    return lambda word: _is_stated(word.text, word.box, letters)


def _is_stated(
    text: str, box: Box, letters: Mapping[tuple[int, int], list[tuple[str, float, float]]]
) -> bool:
    if not letters:
        return False
    x_min, y_min, x_max, y_max = box
    found: Counter[str] = Counter()
    for column in range(int(x_min // _CELL_PX), int(x_max // _CELL_PX) + 1):
        for row in range(int(y_min // _CELL_PX), int(y_max // _CELL_PX) + 1):
            for letter, x, y in letters.get((column, row), ()):
                if x_min <= x <= x_max and y_min <= y <= y_max:
                    found[letter] += 1
    return not Counter(text) - found
