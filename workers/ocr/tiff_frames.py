"""Find the frames of a TIFF that are pages, without decoding any of them."""

import io
import struct
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
    def is_mask(self) -> bool:
        return bool(
            self.tags.get(_NEW_SUBFILE_TYPE, 0) & _MASK_BIT
            and self.tags.get(_PHOTOMETRIC) == _MASK_PHOTOMETRIC
        )

    def pixel_count(self) -> int:
        return self.tags.get(_WIDTH, 0) * self.tags.get(_HEIGHT, 0)

    def belongs_to(self, largest: "_Frame") -> bool:
        """Tell whether it is no page of its own, in a file with this largest page."""
        return self.is_mask or (
            self.is_reduced
            and all(
                self.tags.get(side, 0) < largest.tags.get(side, 0) for side in (_WIDTH, _HEIGHT)
            )
        )


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
        page_count += not (frames[-1].is_reduced or frames[-1].is_mask)
        link_at = offset + struct.calcsize(layout.count_format) + entries * layout.entry_bytes
    full = [frame for frame in frames if not (frame.is_reduced or frame.is_mask)]
    if not full or len(frames) > max_pages * _FRAMES_PER_PAGE:
        return [frame.offset for frame in frames]
    largest = max(full, key=_Frame.pixel_count)
    return [frame.offset for frame in frames if not frame.belongs_to(largest)]


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
