import io
import itertools
import struct

import pytest
from PIL import Image

from workers.ocr.tiff_frames import count_tiff_frames


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

    assert count_tiff_frames(tiff, max_frames=100) == 3


def test_a_big_endian_chain_is_counted() -> None:
    content = struct.pack(">2sHI", b"MM", 42, 8) + struct.pack(">HI", 0, 14) + bytes(6)

    assert count_tiff_frames(io.BytesIO(content), max_frames=100) == 2


def test_a_loop_ends() -> None:
    assert count_tiff_frames(classic_chain(20, 40, 60, 20), max_frames=100) == 3


def test_counting_ends_one_above_the_limit() -> None:
    offsets = range(20, 180, 10)

    assert count_tiff_frames(classic_chain(*offsets, 0), max_frames=4) == 5


def test_a_frame_that_was_cut_off_is_counted() -> None:
    assert count_tiff_frames(classic_chain(20, 40, 5000), max_frames=100) == 3


def test_a_file_without_any_frame_has_none() -> None:
    assert count_tiff_frames(classic_chain(5000, 0), max_frames=100) == 0


@pytest.mark.parametrize("size_bytes", [0, 3, 7])
def test_a_file_that_ends_in_its_header_has_none(size_bytes: int) -> None:
    assert count_tiff_frames(io.BytesIO(b"II*\x00\x08\x00\x00"[:size_bytes]), max_frames=9) == 0
