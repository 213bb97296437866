"""Tell what a file is from its first bytes, never from its name."""

from enum import StrEnum

HEAD_BYTES = 1024
"""How many bytes ``sniff`` wants: readers accept a PDF header anywhere within the first 1,024."""

# The sizes of the headers that follow "BM": two letters alone would make a text of "BMW" a bitmap.
_BMP_HEADER_SIZES = frozenset({12, 40, 52, 56, 64, 108, 124})


class MediaType(StrEnum):
    """The formats that are read; the values are IANA media types."""

    PDF = "application/pdf"
    PNG = "image/png"
    JPEG = "image/jpeg"
    TIFF = "image/tiff"
    WEBP = "image/webp"
    BMP = "image/bmp"


_MAGICS = {
    b"\x89PNG\r\n\x1a\n": MediaType.PNG,
    b"\xff\xd8\xff": MediaType.JPEG,
    b"II*\x00": MediaType.TIFF,
    b"MM\x00*": MediaType.TIFF,
    b"II+\x00\x08\x00\x00\x00": MediaType.TIFF,
    b"MM\x00+\x00\x08\x00\x00": MediaType.TIFF,
}


def sniff(head: bytes) -> MediaType | None:
    """Return the format whose signature the content bears.

    A signature is no promise that the rest can be read. TIFF includes BigTIFF.

    Args:
        head: the first ``HEAD_BYTES`` bytes of the file, or all of a shorter one.

    Returns:
        None when the content is none of the formats; so also for an empty file.
    """
    for magic, media_type in _MAGICS.items():
        if head.startswith(magic):
            return media_type
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return MediaType.WEBP
    if head.startswith(b"BM") and int.from_bytes(head[14:18], "little") in _BMP_HEADER_SIZES:
        return MediaType.BMP
    # Last, since this one may stand anywhere: an image may carry the letters in its metadata.
    if b"%PDF-" in head[:HEAD_BYTES]:
        return MediaType.PDF
    return None
