import pytest

from workers.ocr.formats import HEAD_BYTES, MediaType, sniff


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
