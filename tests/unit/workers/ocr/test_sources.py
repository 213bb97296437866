from pathlib import Path

import pytest
from PIL import Image

from tests.support.pdf_files import grey_pages
from workers.ocr.errors import (
    EmptyDocumentError,
    FileTooLargeError,
    TooManyPagesError,
    UnreadableDocumentError,
    UnsupportedMediaTypeError,
)
from workers.ocr.formats import MediaType
from workers.ocr.sources import SourceLimits, open_source


def written(folder: Path, content: bytes, name: str = "document") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def test_the_name_of_a_file_does_not_matter(tmp_path: Path) -> None:
    path = written(tmp_path, grey_pages([0]), "photo.jpg")

    with open_source(path, limits=SourceLimits()) as source:
        assert source.media_type is MediaType.PDF


def test_an_image_has_one_page(tmp_path: Path) -> None:
    Image.new("RGB", (5, 5)).save(tmp_path / "image", "PNG")

    with open_source(tmp_path / "image", limits=SourceLimits()) as source:
        assert (source.media_type, source.page_count) == (MediaType.PNG, 1)


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EmptyDocumentError):
        open_source(written(tmp_path, b""), limits=SourceLimits())


def test_a_text_named_pdf_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, b"Dear Sir or Madam", "letter.pdf")

    with pytest.raises(UnsupportedMediaTypeError, match="PDF, PNG, JPEG, TIFF, WebP or BMP"):
        open_source(path, limits=SourceLimits())


def test_a_pdf_header_alone_is_damaged(tmp_path: Path) -> None:
    with pytest.raises(UnreadableDocumentError):
        open_source(written(tmp_path, b"%PDF-1.7\n%%EOF"), limits=SourceLimits())


def test_a_file_over_the_byte_limit_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, b"%PDF-1.7" + bytes(92))

    with pytest.raises(FileTooLargeError) as caught:
        open_source(path, limits=SourceLimits(max_file_bytes=99))

    assert (caught.value.limit, caught.value.actual) == (99, 100)


def test_a_pdf_over_the_page_limit_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, grey_pages([0, 1, 2, 3]))

    with pytest.raises(TooManyPagesError) as caught:
        open_source(path, limits=SourceLimits(max_pages=3))

    assert (caught.value.limit, caught.value.actual) == (3, 4)


def test_a_tiff_over_the_frame_limit_is_refused(tmp_path: Path) -> None:
    frames = [Image.new("1", (8, 8))] * 4
    frames[0].save(tmp_path / "fax", "TIFF", save_all=True, append_images=frames[1:])

    with pytest.raises(TooManyPagesError) as caught:
        open_source(tmp_path / "fax", limits=SourceLimits(max_pages=3))

    assert (caught.value.limit, caught.value.actual) == (3, 4)
