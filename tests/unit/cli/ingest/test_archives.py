"""Archives that are broken, hostile or too large: what is not read is named."""

import gzip
import io
import lzma
import os
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest

from cli.ingest.archives import ArchiveLimits
from cli.ingest.content import ContentError
from cli.ingest.source import source_of

PDF = b"%PDF-1.7\n" + bytes(range(256)) * 8
GIB = 2**30


def scan(path: Path, **limits: int) -> dict[str, str | bytes]:
    """Return the code of what is refused, and the bytes of everything else, by name."""
    found: dict[str, str | bytes] = {}
    for each in source_of(path, ArchiveLimits(**limits)).scan():
        name = each.path.removeprefix(f"{path.name}!/")
        assert name not in found
        found[name] = each.refusal.code if each.refusal else _content(each.load)
    return found


def _content(load: Callable[[], object] | None) -> str | bytes:
    assert load is not None
    try:
        content = load()
    except ContentError as error:
        return error.code
    assert hasattr(content, "file")
    file: IO[bytes] = content.file
    file.seek(0)
    read = file.read()
    file.close()
    return read


def zip_of(path: Path, *members: tuple[zipfile.ZipInfo | str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for info, content in members:
            packed.writestr(info, content)
    return path


def add(packed: tarfile.TarFile, name: str, content: bytes = PDF, **values: object) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for attribute, value in values.items():
        setattr(info, attribute, value)
    packed.addfile(info, io.BytesIO(content))


def tar_of(path: Path, count: int = 3, *, mode: str = "w") -> Path:
    with tarfile.open(path, mode) as packed:  # type: ignore[call-overload] # one of its modes
        for number in range(count):
            add(packed, f"{number}.pdf")
    return path


def change(path: Path, old: bytes, new: bytes, *, count: int) -> None:
    content = path.read_bytes()
    assert content.count(old) == count
    path.write_bytes(content.replace(old, new))


def test_links_and_other_kinds_of_a_tar_are_named(tmp_path: Path) -> None:
    path = tmp_path / "box.tar"
    with tarfile.open(path, "w") as packed:
        add(packed, "folder", b"", type=tarfile.DIRTYPE)
        add(packed, "/etc/a.pdf")
        add(packed, "link.pdf", b"", type=tarfile.SYMTYPE, linkname="/etc/passwd")
        add(packed, "hard.pdf", b"", type=tarfile.LNKTYPE, linkname="/etc/a.pdf")
        add(packed, "device", b"", type=tarfile.CHRTYPE)
        add(packed, "pipe", b"", type=tarfile.FIFOTYPE)

    assert scan(path) == {
        "/etc/a.pdf": PDF,
        "link.pdf": "link",
        "hard.pdf": "link",
        "device": "not_a_file",
        "pipe": "not_a_file",
    }


def test_links_of_a_zip_are_named(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("link.pdf")
    link.create_system = 3
    link.external_attr = (stat.S_IFLNK | 0o777) << 16

    path = zip_of(tmp_path / "box.zip", (link, b"/etc/passwd"), ("folder/", b""), ("a.pdf", PDF))

    assert scan(path) == {"link.pdf": "link", "a.pdf": PDF}


def test_encrypted_members_are_named_and_the_others_read(tmp_path: Path) -> None:
    path = zip_of(tmp_path / "box.zip", ("a.pdf", PDF), ("secret.pdf", PDF))
    content = bytearray(path.read_bytes())
    entry = content.rindex(b"PK\x01\x02")
    content[entry + 8] |= 1  # the flag, in the directory
    path.write_bytes(content)

    assert scan(path) == {"a.pdf": PDF, "secret.pdf": "encrypted"}


def test_other_compressions_are_named(tmp_path: Path) -> None:
    path = tmp_path / "box.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as packed:
        packed.writestr("a.pdf", PDF)

    assert scan(path) == {"a.pdf": "unsupported_compression"}


@pytest.mark.parametrize("stated", [len(PDF) - 100, len(PDF) + 100])
def test_a_member_of_another_size_than_stated_is_damaged(tmp_path: Path, stated: int) -> None:
    path = zip_of(tmp_path / "box.zip", ("lying.pdf", PDF), ("b.pdf", PDF + b"b"))
    size = struct.pack("<I", len(PDF))
    change(path, size, struct.pack("<I", stated), count=2)

    assert scan(path) == {"lying.pdf": "damaged", "b.pdf": PDF + b"b"}


def test_a_member_that_hides_bytes_behind_a_right_checksum_is_damaged(tmp_path: Path) -> None:
    path = zip_of(tmp_path / "box.zip", ("a.pdf", PDF))
    content = path.read_bytes()
    short = zlib.crc32(PDF[:-100])
    content = content.replace(struct.pack("<I", zlib.crc32(PDF)), struct.pack("<I", short))
    path.write_bytes(
        content.replace(struct.pack("<I", len(PDF)), struct.pack("<I", len(PDF) - 100))
    )

    assert scan(path) == {"a.pdf": "damaged"}


def test_members_that_share_their_bytes_are_refused(tmp_path: Path) -> None:
    path = zip_of(tmp_path / "box.zip", ("a.pdf", os.urandom(5_000)), ("b.pdf", os.urandom(5_000)))
    content = path.read_bytes()
    with zipfile.ZipFile(path) as packed:
        sizes = [info.compress_size for info in packed.infolist()]
    entry = content.index(b"PK\x01\x02")
    many = content[:entry] + content[entry:].replace(
        struct.pack("<I", sizes[0]), struct.pack("<I", 9_000)
    )
    path.write_bytes(many)

    assert scan(path) == {"box.zip": "archive_damaged"}


@pytest.mark.parametrize("name", ["box.zip", "box.tar"])
def test_too_many_members_are_refused_by_the_name_of_the_archive(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name.endswith("zip"):
        zip_of(path, *((f"{number}.pdf", PDF) for number in range(4)))
    else:
        tar_of(path, 4)

    assert scan(path, max_members=3)[name] == "archive_too_many_members"
    assert name not in scan(path, max_members=4)


def test_a_long_directory_is_counted_before_it_is_read(tmp_path: Path) -> None:
    path = zip_of(tmp_path / "box.zip", *((f"{number:0200}.pdf", b"") for number in range(1_000)))

    assert scan(path, max_members=999) == {"box.zip": "archive_too_many_members"}
    assert len(scan(path, max_members=1_000)) == 1_000


@pytest.mark.parametrize("name", ["box.zip", "box.tar", "box.tar.gz"])
def test_more_bytes_than_allowed_are_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    members = [(f"{number}.pdf", os.urandom(100_000)) for number in range(3)]
    if name.endswith("zip"):
        zip_of(path, *members)
    else:
        with tarfile.open(path, "w:gz" if name.endswith("gz") else "w") as packed:  # type: ignore[call-overload] # likewise
            for member, content in members:
                add(packed, member, content)

    assert scan(path, max_bytes=250_000)[name] == "archive_too_large"
    assert scan(path, max_member_bytes=99_999) == dict.fromkeys(
        (member for member, _ in members), "file_too_large"
    )


@pytest.mark.parametrize("name", ["box.zip", "box.tar.gz", "box.tar.xz"])
def test_a_bomb_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    zeros = bytes(2**26 + 1)
    if name.endswith("zip"):
        zip_of(path, ("a.pdf", zeros))
    else:
        with tarfile.open(path, f"w:{name[-2:]}") as packed:  # type: ignore[call-overload] # likewise
            add(packed, "a.pdf", zeros)

    assert scan(path)[name] == "archive_ratio"


def test_archives_too_deep_in_one_another_are_named(tmp_path: Path) -> None:
    packed = PDF
    for depth in range(4):
        path = zip_of(tmp_path / f"{depth}.zip", (f"{depth - 1}.zip" if depth else "a.pdf", packed))
        packed = path.read_bytes()

    assert scan(path, max_nesting=3) == {"2.zip!/1.zip!/0.zip": "archive_too_deep"}
    assert scan(path, max_nesting=4) == {"2.zip!/1.zip!/0.zip!/a.pdf": PDF}


@pytest.mark.parametrize("name", ["box.tar", "box.tar.gz", "box.tar.xz"])
def test_an_archive_that_is_cut_off_says_so_after_what_was_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    mode = {"tar": "w", ".gz": "w:gz", ".xz": "w:xz"}[name[-3:]]
    with tarfile.open(path, mode) as packed:  # type: ignore[call-overload] # likewise
        for number in range(3):
            add(packed, f"{number}.pdf", os.urandom(2**17))
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])

    found = scan(path)

    assert found[name] == "archive_damaged"
    assert "0.pdf" in found
    assert "2.pdf" not in found


def test_a_tar_that_ends_between_two_members_says_so(tmp_path: Path) -> None:
    path = tar_of(tmp_path / "box.tar", 2)
    with tarfile.open(path) as packed:
        second = packed.getmembers()[1].offset
    path.write_bytes(path.read_bytes()[:second])

    assert scan(path) == {"0.pdf": PDF, "box.tar": "archive_damaged"}


def test_a_broken_header_is_not_taken_for_the_end(tmp_path: Path) -> None:
    path = tar_of(tmp_path / "box.tar", 3)
    with tarfile.open(path) as packed:
        second = packed.getmembers()[1].offset
    content = bytearray(path.read_bytes())
    content[second] ^= 0xFF
    path.write_bytes(content)

    assert scan(path) == {"0.pdf": PDF, "box.tar": "archive_damaged"}


def test_a_header_that_would_fill_the_memory_is_refused(tmp_path: Path) -> None:
    header = tarfile.TarInfo("././@LongLink")
    header.type = tarfile.GNUTYPE_LONGNAME
    header.size = 2 * GIB
    path = tmp_path / "box.tar.gz"
    path.write_bytes(gzip.compress(header.tobuf() + b"x" * 2**20))

    assert scan(path) == {"box.tar.gz": "archive_damaged"}


@pytest.mark.timeout(20)  # it was a minute, and a small archive holds hundreds
def test_a_header_that_is_slow_to_read_is_refused(tmp_path: Path) -> None:
    digits = tarfile.TarInfo("digits")
    digits.type = tarfile.XHDTYPE
    digits.size = 127 * 2**10
    path = tmp_path / "box.tar.gz"
    path.write_bytes(gzip.compress(digits.tobuf() + b"1" * digits.size + bytes(1_024)))

    assert scan(path) == {"box.tar.gz": "archive_damaged"}


def test_a_list_of_holes_that_would_fill_the_memory_is_refused(tmp_path: Path) -> None:
    holes = tarfile.TarInfo("holes.pdf")
    holes.type = tarfile.GNUTYPE_SPARSE
    header = bytearray(holes.tobuf(tarfile.GNU_FORMAT))
    header[482] = 1  # the list goes on
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header[:512])
    part = bytearray((b"%011o\0" % 1) * 42 + bytes(8))
    part[504] = 1
    path = tmp_path / "box.tar.gz"
    path.write_bytes(gzip.compress(bytes(header) + bytes(part) * 4_096 + bytes(1_024)))

    assert scan(path) == {"box.tar.gz": "archive_damaged"}


def test_a_long_name_of_digits_is_read(tmp_path: Path) -> None:
    name = "/".join(["9" * 240] * 4) + ".pdf"
    path = tmp_path / "box.tar"
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as packed:
        add(packed, name)

    assert scan(path) == {name: PDF}


def test_what_follows_the_end_of_a_tar_is_named(tmp_path: Path) -> None:
    first, second = tar_of(tmp_path / "first.tar", 1), tar_of(tmp_path / "second.tar", 2)
    path = tmp_path / "box.tar"
    path.write_bytes(first.read_bytes() + second.read_bytes())

    assert scan(path) == {"0.pdf": PDF, "box.tar": "archive_damaged"}


def test_several_streams_of_xz_in_a_row_are_one_tar(tmp_path: Path) -> None:
    plain = tar_of(tmp_path / "plain.tar").read_bytes()
    path = tmp_path / "box.tar.xz"
    path.write_bytes(lzma.compress(plain[:3_000]) + bytes(8) + lzma.compress(plain[3_000:]))

    assert scan(path) == {f"{number}.pdf": PDF for number in range(3)}


@pytest.mark.parametrize("name", ["box.zip", "box.tar"])
def test_an_archive_without_files_is_named(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name.endswith("zip"):
        zip_of(path)
    else:
        tar_of(path, 0)

    assert scan(path) == {name: "empty"}


def test_a_zip_without_a_directory_is_damaged(tmp_path: Path) -> None:
    path = zip_of(tmp_path / "box.zip", ("a.pdf", PDF))
    path.write_bytes(path.read_bytes()[:-30])

    assert scan(path) == {"box.zip": "archive_damaged"}


def test_members_of_one_name_are_all_read(tmp_path: Path) -> None:
    path = tmp_path / "box.tar"
    with tarfile.open(path, "w") as packed:
        add(packed, "a.pdf", b"%PDF-1")
        add(packed, "a.pdf", b"%PDF-2")

    found = list(source_of(path, ArchiveLimits()).scan())

    assert [each.key for each in found] == ["box.tar!/a.pdf"] * 2
    assert found[0].fingerprint != found[1].fingerprint
