"""Find the frames of a TIFF that are pages, without decoding any of them."""

import io
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

# Tags: what kind of picture it is, in today's and in the oldest way, and its size.
_NEW_SUBFILE_TYPE: Final = 254
_SUBFILE_TYPE: Final = 255
_WIDTH: Final = 256
_HEIGHT: Final = 257
_PHOTOMETRIC: Final = 262
_REDUCED_BIT: Final = 1
_MASK_BIT: Final = 4
_OLD_REDUCED: Final = 2
_MASK_PHOTOMETRIC: Final = 4
_TAGS_READ: Final = frozenset({
    _NEW_SUBFILE_TYPE,
    _SUBFILE_TYPE,
    _WIDTH,
    _HEIGHT,
    _PHOTOMETRIC,
})
# Entries stand in the order of their tags, these are of the lowest, and each is 12 or 20 bytes.
_ENTRIES_READ: Final = 32
_VALUE_FORMATS: Final = {3: "H", 4: "I", 16: "Q"}
# How much a copy's shape may be off: makers of thumbnails round.
_SHAPE_TOLERANCE: Final = 0.02
# Pyramids keep some ten smaller copies of a picture.
_FRAMES_PER_PAGE: Final = 16


@dataclass(frozen=True, slots=True)
class _Layout:
    """What differs between TIFF and BigTIFF, little and big endian."""

    order: str
    is_big: bool

    @property
    def offset_format(self) -> str:
        return self.order + ("Q" if self.is_big else "I")

    @property
    def count_format(self) -> str:
        return self.order + ("Q" if self.is_big else "H")

    @property
    def entry_bytes(self) -> int:
        return 20 if self.is_big else 12

    @property
    def first_link_at(self) -> int:
        return 8 if self.is_big else 4


@dataclass(frozen=True, slots=True)
class _Frame:
    offset: int
    tags: dict[int, int] = field(default_factory=dict)

    @property
    def is_reduced(self) -> bool:
        return bool(
            self.tags.get(_NEW_SUBFILE_TYPE, 0) & _REDUCED_BIT
            or self.tags.get(_SUBFILE_TYPE) == _OLD_REDUCED
        )

    @property
    def is_full(self) -> bool:
        return not (self.is_reduced or self.is_mask)

    @property
    def is_mask(self) -> bool:
        return bool(
            self.tags.get(_NEW_SUBFILE_TYPE, 0) & _MASK_BIT
            and self.tags.get(_PHOTOMETRIC) == _MASK_PHOTOMETRIC
        )

    def is_copy_of(self, other: "_Frame") -> bool:
        """Tell whether it is, as it says, another frame made smaller: one of the same shape."""
        width, height = self.size_px
        full_width, full_height = other.size_px
        # Sides were rounded to whole pixels.
        tolerance = max(full_width, full_height, _SHAPE_TOLERANCE * full_width * height)
        return (
            width < full_width
            and height < full_height
            and abs(full_width * height - width * full_height) <= tolerance
        )

    @property
    def size_px(self) -> tuple[int, int]:
        return self.tags.get(_WIDTH, 0), self.tags.get(_HEIGHT, 0)


class FrameFile(io.FileIO):
    """A TIFF whose first frame is the one at ``offset``.

    A reader that goes along the chain to each page needs, for all pages together, a time that
    grows with their square: minutes for a few thousand frames.
    """

    def __init__(self, path: Path, offset: int) -> None:
        super().__init__(path)
        head = super().read(16)
        layout = _layout_of(head)
        link = struct.pack(layout.offset_format, offset)
        at = layout.first_link_at
        self._head = head[:at] + link + head[at + len(link) :]
        self.seek(0)

    def read(self, size: int | None = -1, /) -> bytes:
        position = self.tell()
        content = super().read(-1 if size is None else size) or b""
        head = self._head[position : position + len(content)]
        return head + content[len(head) :]


def page_offsets(stream: BinaryIO, *, max_pages: int) -> list[int]:
    """Return where the frames of a TIFF or BigTIFF that are pages lie, in their order.

    No pages are smaller copies of another frame (thumbnails, pyramids) and masks, where the file
    says that they are that and holds what they belong to: a page that only claims to be a smaller
    copy stays a page. A chain that comes back to itself ends there. A link that leads out of the
    file counts as one page more: the file was cut, and the page that is lost has to be seen as a
    failed page.

    Args:
        stream: the file, seekable; its position is moved.
        max_pages: the search ends where it is certain that there are more, so that a file of a
            million frames costs nothing.

    Returns:
        Byte offsets of image file directories; empty when not even the first lies within the file.

    Source: TIFF 6.0, section 2, "Image File Directory", and section 8, "NewSubfileType"; the
    BigTIFF design of Adobe and libtiff.
    """
    frames: list[_Frame] = []
    page_count = 0
    stream.seek(0)
    layout = _layout_of(stream.read(16))
    seen: set[int] = set()
    link_at = layout.first_link_at
    while page_count <= max_pages and len(frames) <= max_pages * _FRAMES_PER_PAGE:
        offset = _number_at(stream, link_at, layout.offset_format)
        if not offset or offset in seen:
            break
        seen.add(offset)
        entries = _number_at(stream, offset, layout.count_format)
        if entries is None:
            if frames:
                frames.append(_Frame(offset))
            break
        frames.append(_Frame(offset, _read_tags(stream, entries, layout)))
        page_count += frames[-1].is_full
        link_at = offset + struct.calcsize(layout.count_format) + entries * layout.entry_bytes
    if len(frames) <= max_pages * _FRAMES_PER_PAGE and any(frame.is_full for frame in frames):
        frames = _pages_among(frames)
    return [frame.offset for frame in frames]


def _pages_among(frames: Sequence[_Frame]) -> list[_Frame]:
    """Leave out masks, and smaller copies of the nearest full frame before or after them."""
    following: list[_Frame | None] = []
    nearest: _Frame | None = None
    for frame in reversed(frames):
        nearest = frame if frame.is_full else nearest
        following.append(nearest)
    pages: list[_Frame] = []
    nearest = None
    for frame, after in zip(frames, reversed(following), strict=True):
        nearest = frame if frame.is_full else nearest
        originals = [each for each in (nearest, after) if each is not None]
        if frame.is_full or not (frame.is_mask or any(map(frame.is_copy_of, originals))):
            pages.append(frame)
    return pages


def _layout_of(head: bytes) -> _Layout:
    return _Layout("<" if head[:2] == b"II" else ">", head[2:4] in {b"+\x00", b"\x00+"})


def _number_at(stream: BinaryIO, offset: int, number_format: str) -> int | None:
    """Return a number of the file, None where the file ends before."""
    if offset > stream.seek(0, 2):
        return None  # also beyond what can be sought
    stream.seek(offset)
    content = stream.read(struct.calcsize(number_format))
    if len(content) < struct.calcsize(number_format):
        return None
    (number,) = struct.unpack(number_format, content)
    return int(number)


def _read_tags(stream: BinaryIO, entries: int, layout: _Layout) -> dict[int, int]:
    """Return what ``_Frame`` looks at, of the directory whose entries the stream stands at.

    No more, as a file may have a hundred thousand directories.
    """
    content = stream.read(min(entries, _ENTRIES_READ) * layout.entry_bytes)
    value_at = 12 if layout.is_big else 8
    tags = {}
    for start in range(0, len(content) - layout.entry_bytes + 1, layout.entry_bytes):
        tag, kind = struct.unpack_from(layout.order + "HH", content, start)
        value_format = _VALUE_FORMATS.get(kind)
        # An eight-byte number fits into the entry of a BigTIFF only.
        if tag in _TAGS_READ and value_format and (layout.is_big or value_format != "Q"):
            (tags[tag],) = struct.unpack_from(
                layout.order + value_format, content, start + value_at
            )
    return tags
