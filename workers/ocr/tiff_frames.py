"""Count the frames of a TIFF without decoding any of them."""

import struct
from typing import BinaryIO


def count_tiff_frames(stream: BinaryIO, *, max_frames: int) -> int:
    """Return how many image file directories the chain of a TIFF or BigTIFF has.

    A chain that comes back to itself ends there. A link that leads out of the file counts as one
    frame more: the file was cut, and the page that is lost has to be seen as a failed page.

    Args:
        stream: the file, seekable; its position is moved.
        max_frames: counting ends one above it, so that a file of a million frames costs nothing.

    Returns:
        0 when not even the first directory lies within the file.

    Source: TIFF 6.0, section 2, "Image File Directory"; the BigTIFF design of Adobe and libtiff.
    """
    size_bytes = stream.seek(0, 2)
    stream.seek(0)
    head = stream.read(16)
    order = "<" if head[:2] == b"II" else ">"
    is_big = head[2:4] in {b"+\x00", b"\x00+"}
    # (format of the entry count, its bytes, bytes of an entry, format and bytes of an offset)
    count_format, count_bytes, entry_bytes, offset_format, offset_bytes = (
        ("Q", 8, 20, "Q", 8) if is_big else ("H", 2, 12, "I", 4)
    )
    link_at = 8 if is_big else 4

    seen: set[int] = set()
    while len(seen) <= max_frames:
        stream.seek(link_at)
        link = stream.read(offset_bytes)
        if len(link) < offset_bytes:
            return len(seen)
        (offset,) = struct.unpack(order + offset_format, link)
        if offset == 0 or offset in seen:
            return len(seen)
        if offset + count_bytes > size_bytes:
            return len(seen) + 1 if seen else 0
        seen.add(offset)
        stream.seek(offset)
        (entries,) = struct.unpack(order + count_format, stream.read(count_bytes))
        link_at = offset + count_bytes + entries * entry_bytes
        if link_at + offset_bytes > size_bytes:
            return len(seen)
    return len(seen)
