"""The members of a zip, found by its directory and checked against what they say of themselves."""

import copy
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO, Final

from cli.ingest.archive_limits import ArchiveError, Budget
from cli.ingest.content import ContentError
from cli.ingest.members import Member

_DIRECTORY_BYTES: Final = 32 * 2**20
_ENTRY: Final = struct.Struct("<4s24xHHH12x")  # signature, and three lengths of what follows
_ENTRY_SIGNATURE: Final = b"PK\x01\x02"
_OPENING_READ_BYTES: Final = 128 * 2**10  # more is read at once for the directory alone
_ENCRYPTED: Final = 0x1
_UNIX: Final = 3
# The other methods of zip give what they hold in pieces of any size.
_METHODS: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
# What the module raises for a broken archive, and says nowhere.
_BROKEN: Final = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    ValueError,
)


def members(file: IO[bytes], budget: Budget) -> Iterator[Member]:
    """Yield the files of a zip in the order of its directory, those that cannot be read too.

    Args:
        file: the archive; seekable, and kept open while members are read.
        budget: charged with what the directory states, before the first member is yielded: a
            member never gives more than that.

    Raises:
        ArchiveError: it is broken, or a limit is reached.
    """
    directory = _Directory(file, budget)
    try:
        archive = zipfile.ZipFile(directory)
    except _BROKEN as error:
        raise ArchiveError("archive_damaged", "The zip has no sound directory.") from error
    directory.is_read = True
    with archive:
        infos = archive.infolist()
        _require_sound(infos, file, budget)
        for number, info in enumerate(infos):
            if not info.is_dir():
                yield _member(archive, info, number)


class _Directory:
    """The archive's file; what it reads while the archive is opened is looked at first."""

    def __init__(self, file: IO[bytes], budget: Budget) -> None:
        self._file = file
        self._budget = budget
        self.is_read = False
        self.seek = file.seek
        self.tell = file.tell

    def read(self, size: int = -1) -> bytes:
        if not self.is_read and size > _OPENING_READ_BYTES:
            self._look_at(size)
        return self._file.read(size)

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        """The file is somebody else's."""

    def _look_at(self, size: int) -> None:
        """Count the entries before they are read: each becomes an object in memory."""
        if size > _DIRECTORY_BYTES:
            raise ArchiveError(
                "archive_too_many_members",
                f"Its directory has more than {_DIRECTORY_BYTES:,} bytes.",
                is_of_all=True,
            )
        start = self._file.tell()
        position = start
        count = 0
        while position + _ENTRY.size <= start + size:
            self._file.seek(position)
            head = self._file.read(_ENTRY.size)
            if len(head) < _ENTRY.size:
                break
            signature, *lengths = _ENTRY.unpack(head)
            if signature != _ENTRY_SIGNATURE:
                break
            count += 1
            if count > self._budget.limits.max_members:
                self._budget.take_members(count)
            position += _ENTRY.size + sum(lengths)
        self._file.seek(start)


def _require_sound(infos: list[zipfile.ZipInfo], file: IO[bytes], budget: Budget) -> None:
    budget.take_members(len(infos))
    budget.take_bytes(sum(info.file_size for info in infos))
    file.seek(0, os.SEEK_END)
    if sum(info.compress_size for info in infos) > file.tell():
        raise ArchiveError("archive_damaged", "Its members lie over one another.")


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, number: int) -> Member:
    fingerprint = f"{number}:{info.CRC}:{info.file_size}"
    refusal = _refusal(info)
    if refusal is not None:
        return Member(info.filename, fingerprint, refusal=refusal)
    return Member(info.filename, fingerprint, open=lambda: _Checked(archive, info))  # type: ignore[arg-type, return-value]


def _refusal(info: zipfile.ZipInfo) -> tuple[str, str] | None:
    mode = info.external_attr >> 16 if info.create_system == _UNIX else 0
    if stat.S_ISLNK(mode):
        return "link", "It is a link, and links in archives are not followed."
    if stat.S_IFMT(mode) not in {0, stat.S_IFREG}:
        return "not_a_file", "It is no regular file."
    if info.flag_bits & _ENCRYPTED:
        return "encrypted", "It is encrypted; send the archive without a password."
    if info.compress_type not in _METHODS:
        return (
            "unsupported_compression",
            "It is not stored or deflated; pack the archive anew, the usual way.",
        )
    return None


class _Checked:
    """A member that has to be as long as the directory says, and of the checksum."""

    def __init__(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> None:
        self._size = info.file_size
        self._left = info.file_size
        # Read with room for one byte more: with its own size, what is longer would be cut.
        roomy = copy.copy(info)
        roomy.file_size += 1
        try:
            self._stream = archive.open(roomy)
        except _BROKEN as error:
            raise _damaged() from error

    def read(self, size: int) -> bytes:
        try:
            block = self._stream.read(size)
        except (*_BROKEN, OSError) as error:
            raise _damaged() from error
        self._left -= len(block)
        if self._left < 0 or (not block and self._left):
            raise _damaged()
        return block


def _damaged() -> ContentError:
    return ContentError(
        "damaged", "It is not what the directory of the archive says: another size or checksum."
    )
