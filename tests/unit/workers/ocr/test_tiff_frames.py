import io
import itertools
import struct

import pytest
from PIL import Image

from workers.ocr.tiff_frames import page_offsets


def classic_chain(*links: int, size_bytes: int = 200) -> io.BytesIO:
    """A little-endian TIFF of empty directories: each link is where the next one lies."""
    content = bytearray(size_bytes)
    content[:8] = struct.pack("<2sHI", b"II", 42, links[0])
    for offset, following in itertools.pairwise(links):
        content[offset : offset + 6] = struct.pack("<HI", 0, following)
    return io.BytesIO(bytes(content))


@pytest.mark.parametrize("is_big", [False, True])
def test_frames_written_by_another_program_are_counted(*, is_big: bool) -> None:
    frames = [Image.new("1", (8, 8), color) for color in (0, 1, 0)]
    tiff = io.BytesIO()
    frames[0].save(tiff, "TIFF", save_all=True, append_images=frames[1:], big_tiff=is_big)

    assert len(page_offsets(tiff, max_pages=100)) == 3


def test_a_big_endian_chain_is_counted() -> None:
    content = struct.pack(">2sHI", b"MM", 42, 8) + struct.pack(">HI", 0, 14) + bytes(6)

    assert len(page_offsets(io.BytesIO(content), max_pages=100)) == 2


def test_a_loop_ends() -> None:
    assert len(page_offsets(classic_chain(20, 40, 60, 20), max_pages=100)) == 3


def test_the_search_ends_one_above_the_limit() -> None:
    offsets = range(20, 180, 10)

    assert len(page_offsets(classic_chain(*offsets, 0), max_pages=4)) == 5


def tagged_chain(*frames: dict[int, int], order: str = "<") -> io.BytesIO:
    """A TIFF whose directories have these tags, each of one whole number."""
    content = struct.pack(order + "2sHI", b"II" if order == "<" else b"MM", 42, 8)
    for index, tags in enumerate(frames):
        entries = [
            struct.pack(order + "HHIHxx", tag, 3, 1, value) for tag, value in sorted(tags.items())
        ]
        following = len(content) + 2 + 12 * len(entries) + 4 if index + 1 < len(frames) else 0
        content += struct.pack(order + "H", len(entries)) + b"".join(entries)
        content += struct.pack(order + "I", following)
    return io.BytesIO(content)


PAGE = {256: 1654, 257: 2339}
THUMBNAIL = {254: 1, 256: 165, 257: 234}
OLD_THUMBNAIL = {255: 2, 256: 165, 257: 234}
MASK = {254: 4, 262: 4, **PAGE}


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("other", [THUMBNAIL, OLD_THUMBNAIL, MASK])
def test_what_belongs_to_another_frame_is_no_page(order: str, other: dict[int, int]) -> None:
    chain = tagged_chain(other, PAGE, other, PAGE, other, order=order)

    assert len(page_offsets(chain, max_pages=100)) == 2


@pytest.mark.parametrize(
    "frames",
    [
        (THUMBNAIL, THUMBNAIL),
        (MASK,),
        (PAGE, {254: 1, **PAGE}),
        (PAGE, {254: 2, 256: 165, 257: 234}),
        (PAGE, {254: 4, 262: 1, **PAGE}),
        (PAGE, {254: 1, 256: 1000, 257: 900}),
        (PAGE, {256: 400, 257: 300}, {254: 1, 256: 165, 257: 234}),
    ],
    ids=[
        "nothing but thumbnails",
        "nothing but a mask",
        "a copy as large as the page",
        "a small page of several",
        "a mask that is a picture",
        "a smaller page of another shape",
        "a copy of a page that is not beside it",
    ],
)
def test_what_stands_for_nothing_else_is_a_page(frames: tuple[dict[int, int], ...]) -> None:
    assert len(page_offsets(tagged_chain(*frames), max_pages=100)) == len(frames)


def test_thumbnails_do_not_count_towards_the_limit() -> None:
    chain = tagged_chain(*[PAGE, THUMBNAIL] * 4)

    assert len(page_offsets(chain, max_pages=4)) == 4


def test_a_file_of_nothing_but_endless_thumbnails_is_over_the_limit() -> None:
    chain = tagged_chain(PAGE, *[THUMBNAIL] * 200)

    assert len(page_offsets(chain, max_pages=4)) > 4


def test_a_link_beyond_what_can_be_sought_leads_out_of_the_file() -> None:
    first = struct.pack("<2sHHHQ", b"II", 43, 8, 0, 16)
    chain = io.BytesIO(first + struct.pack("<Q", 0) + struct.pack("<Q", 2**64 - 1))

    assert len(page_offsets(chain, max_pages=100)) == 2


def test_a_frame_that_was_cut_off_is_counted() -> None:
    assert len(page_offsets(classic_chain(20, 40, 5000), max_pages=100)) == 3


def test_a_file_without_any_frame_has_none() -> None:
    assert len(page_offsets(classic_chain(5000, 0), max_pages=100)) == 0


@pytest.mark.parametrize("size_bytes", [0, 3, 7])
def test_a_file_that_ends_in_its_header_has_none(size_bytes: int) -> None:
    assert len(page_offsets(io.BytesIO(b"II*\x00\x08\x00\x00"[:size_bytes]), max_pages=9)) == 0
