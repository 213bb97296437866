import io

import pytest
from PIL import Image

from workers.ocr.formats import HEAD_BYTES, MediaType, sniff, stated_pixels


@pytest.mark.parametrize(
    ("head", "media_type"),
    [
        (b"%PDF-1.7\n", MediaType.PDF),
        (b"\x89PNG\r\n\x1a\n\x00\x00", MediaType.PNG),
        (b"\xff\xd8\xff\xe0\x00\x10JFIF", MediaType.JPEG),
        (b"II*\x00\x08\x00\x00\x00", MediaType.TIFF),
        (b"MM\x00*\x00\x00\x00\x08", MediaType.TIFF),
        (b"II+\x00\x08\x00\x00\x00\x10", MediaType.TIFF),
        (b"MM\x00+\x00\x08\x00\x00\x00", MediaType.TIFF),
        (b"RIFF\x10\x00\x00\x00WEBPVP8 ", MediaType.WEBP),
        (b"BM" + bytes(12) + b"\x28\x00\x00\x00", MediaType.BMP),
    ],
)
def test_a_format_is_told_by_its_signature(head: bytes, media_type: MediaType) -> None:
    assert sniff(head) is media_type


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"plain text",
        b"GIF89a\x01\x00",
        b"BMW built it, a text says, and twenty more bytes",
        b"RIFF\x10\x00\x00\x00WAVEfmt ",
        b"\x89PNG\n\x1a\n",
        b"II*",
    ],
)
def test_other_content_is_no_format(head: bytes) -> None:
    assert sniff(head) is None


def test_a_pdf_header_may_follow_junk() -> None:
    assert sniff(b"\x00junk" * 200 + b"%PDF-1.4") is MediaType.PDF


def test_a_pdf_header_behind_the_head_does_not_count() -> None:
    assert sniff(b" " * HEAD_BYTES + b"%PDF-1.4") is None


def test_an_image_that_mentions_pdf_is_an_image() -> None:
    assert sniff(b"\xff\xd8\xff\xfe\x00\x10%PDF-1.4") is MediaType.JPEG


@pytest.mark.parametrize("media_type", [MediaType.PNG, MediaType.JPEG, MediaType.BMP])
@pytest.mark.parametrize("mode", ["1", "L", "RGB"])
def test_an_image_states_its_pixels(media_type: MediaType, mode: str) -> None:
    written = io.BytesIO()
    Image.new("L" if (mode, media_type) == ("1", MediaType.JPEG) else mode, (301, 77)).save(
        written, format=media_type.partition("/")[2]
    )

    assert stated_pixels(written.getvalue()[:HEAD_BYTES], media_type) == 301 * 77


@pytest.mark.parametrize("media_type", list(MediaType))
def test_a_file_that_is_cut_off_states_nothing(media_type: MediaType) -> None:
    assert stated_pixels(b"\x89PNG\r\n\x1a\n", media_type) is None


@pytest.mark.parametrize("media_type", [MediaType.PDF, MediaType.TIFF, MediaType.WEBP])
def test_other_formats_state_no_pixels_at_a_fixed_place(media_type: MediaType) -> None:
    assert stated_pixels(bytes(range(256)) * 4, media_type) is None


def test_a_jpeg_whose_metadata_fill_its_head_states_nothing() -> None:
    head = b"\xff\xd8\xff\xe1\xff\xff" + bytes(HEAD_BYTES)

    assert stated_pixels(head[:HEAD_BYTES], MediaType.JPEG) is None
