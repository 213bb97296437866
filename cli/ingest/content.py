"""The bytes of one file: hashed before they are sent, and held to that hash while they are."""

import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Protocol

from workers.ocr.formats import HEAD_BYTES

_BLOCK_BYTES: Final = 256 * 2**10
# Of an archive's member; a larger one goes to a file without a name.
_IN_MEMORY_BYTES: Final = 2**20


class ContentError(Exception):
    """A file cannot be sent; ``code`` and ``message`` are what the report says of it."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class Digest:
    """What a file holds: its size, its SHA-256 in hexadecimal, and its first bytes."""

    size_bytes: int
    sha256: str
    head: bytes


class Content(Protocol):
    """Bytes that can be read more than once; ``close`` frees what they take."""

    def digest(self) -> Digest:
        """Read all of it.

        Raises:
            ContentError: it cannot be read.
        """
        ...

    def open(self, digest: Digest) -> "CheckedStream":
        """Open it to be sent as what it was.

        Raises:
            ContentError: it cannot be read any more.
        """
        ...

    def close(self) -> None: ...


class CheckedStream:
    """Reads a file again, and raises before its last bytes where they are not the same.

    So whoever receives them never has all of a file that changed in between.

    Args:
        file: at its beginning; closed with this.
        digest: what it has to be.
    """

    def __init__(self, file: IO[bytes], digest: Digest) -> None:
        self._file = file
        self._digest = digest
        self._left = digest.size_bytes
        self._hash = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        wanted = self._left if size < 0 else min(size, self._left)
        try:
            block = self._file.read(wanted)
        except OSError as error:
            raise _unreadable(error) from error
        self._hash.update(block)
        self._left -= len(block)
        if wanted and not block:
            raise _changed()
        if not self._left and (self._hash.hexdigest() != self._digest.sha256 or self._file.read(1)):
            raise _changed()
        return block

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to the beginning, or say where the end is, as whoever sends it asks."""
        if whence == os.SEEK_END:
            return self._digest.size_bytes
        self._file.seek(offset)
        self._left = self._digest.size_bytes
        self._hash = hashlib.sha256()
        return offset

    def tell(self) -> int:
        return self._digest.size_bytes - self._left

    def close(self) -> None:
        self._file.close()


@dataclass(frozen=True, slots=True)
class FileContent:
    """A file of the file system; a link is followed only where the user named it."""

    path: Path
    follow_link: bool

    def digest(self) -> Digest:
        with self.opened() as file:
            try:
                return digest_of(file)
            except OSError as error:
                raise _unreadable(error) from error

    def open(self, digest: Digest) -> CheckedStream:
        return CheckedStream(self._open(), digest)

    def close(self) -> None:
        """Nothing is held."""

    @contextmanager
    def opened(self) -> Iterator[IO[bytes]]:
        """Lend the file, at its beginning.

        Raises:
            ContentError: it cannot be opened, or is no regular file.
        """
        file = self._open()
        try:
            yield file
        finally:
            file.close()

    def _open(self) -> IO[bytes]:
        # Without waiting for somebody who writes, should it be a pipe by now.
        flags = os.O_RDONLY | os.O_NONBLOCK | (0 if self.follow_link else os.O_NOFOLLOW)
        try:
            number = os.open(self.path, flags)
        except (OSError, ValueError) as error:
            raise _unreadable(error) from error
        if not stat.S_ISREG(os.fstat(number).st_mode):
            os.close(number)
            raise ContentError("not_a_file", "It is no regular file.")
        return os.fdopen(number, "rb")


class SpooledContent:
    """A member of an archive, which can be read once: kept where nobody else finds it."""

    def __init__(self, member: IO[bytes], *, max_bytes: int) -> None:
        """Read the member.

        Raises:
            ContentError: it is larger than ``max_bytes``.
        """
        # Closed by its owner, when the member was sent.
        self.file: IO[bytes] = tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES)  # noqa: SIM115
        try:
            self._digest = digest_of(member, copy=self.file, max_bytes=max_bytes)
        except BaseException:
            self.file.close()
            raise

    def digest(self) -> Digest:
        return self._digest

    def open(self, digest: Digest) -> CheckedStream:
        self.file.seek(0)
        return CheckedStream(_Lent(self.file), digest)  # type: ignore[arg-type] # as far as it is used

    def close(self) -> None:
        self.file.close()


class _Lent:
    """A file that stays open when it is closed: an upload may be tried again."""

    def __init__(self, file: IO[bytes]) -> None:
        self.read = file.read
        self.seek = file.seek

    def close(self) -> None:
        pass


def digest_of(
    file: IO[bytes], *, copy: IO[bytes] | None = None, max_bytes: int | None = None
) -> Digest:
    """Read a file to its end.

    Args:
        file: at its beginning.
        copy: takes its bytes.
        max_bytes: None: any number.

    Raises:
        ContentError: it has more than ``max_bytes``.
        OSError: it cannot be read.
    """
    hashed, size_bytes, head = hashlib.sha256(), 0, b""
    while block := file.read(_BLOCK_BYTES):
        size_bytes += len(block)
        if max_bytes is not None and size_bytes > max_bytes:
            raise ContentError("file_too_large", f"It has more than {max_bytes:,} bytes.")
        if len(head) < HEAD_BYTES:
            head = (head + block)[:HEAD_BYTES]
        hashed.update(block)
        if copy is not None:
            copy.write(block)
    return Digest(size_bytes, hashed.hexdigest(), head)


def _unreadable(error: Exception) -> ContentError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return ContentError("unreadable", f"It cannot be read: {reason}.")


def _changed() -> ContentError:
    return ContentError(
        "changed", "It changed while it was read; run again when nobody writes to it."
    )
