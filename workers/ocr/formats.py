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


def stated_pixels(head: bytes, media_type: MediaType) -> int | None:
    """Return width times height of an image, where its first bytes say both in a fixed place.

    What a file says of itself, for estimates; None where it says nothing there, as a JPEG whose
    metadata come first, or nothing that an image can have.
    """
    match media_type:
        case MediaType.PNG:
            width = int.from_bytes(head[16:20], "big")
            height = int.from_bytes(head[20:24], "big")
        case MediaType.BMP if head[14:18] != _OS2_HEADER_SIZE:
            width = abs(int.from_bytes(head[18:22], "little", signed=True))
            height = abs(int.from_bytes(head[22:26], "little", signed=True))
        case MediaType.JPEG:
            width, height = _jpeg_size(head)
        case _:
            return None
    return width * height or None


_OS2_HEADER_SIZE = (12).to_bytes(4, "little")
# Start of frame, all kinds; C4, C8 and CC are tables in between.
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_JPEG_FRAME_BYTES = 9
_JPEG_MARKER = 0xFF


def _jpeg_size(head: bytes) -> tuple[int, int]:
    """Return width and height from the frame header, (0, 0) when it is not within ``head``."""
    position = 2
    while position + _JPEG_FRAME_BYTES <= len(head) and head[position] == _JPEG_MARKER:
        if head[position + 1] in _JPEG_FRAMES:
            height = int.from_bytes(head[position + 5 : position + 7], "big")
            return int.from_bytes(head[position + 7 : position + 9], "big"), height
        position += 2 + int.from_bytes(head[position + 2 : position + 4], "big")
    return 0, 0
