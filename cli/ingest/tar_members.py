"""The members of a tar, plain or compressed, in one pass from its beginning to its end."""

import gzip
import lzma
import re
import tarfile
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any, Final, Protocol, TypeVar

from cli.ingest.archive_limits import ArchiveError, Budget
from cli.ingest.members import Member

# A header of any tar that is not made to harm; tarfile reads it whole, and a thousand in a row.
_MOST_AT_ONCE_BYTES: Final = 128 * 2**10
# All that stands before one member, of which tarfile keeps several times as much: lists of holes.
_MOST_HEADERS_BYTES: Final = 2**20
# No name has more in a row; tarfile looks for the end of digits from each of them anew.
_MOST_DIGITS: Final = 256
_DIGITS: Final = re.compile(rb"[0-9]+")
_PART_BYTES: Final = 64 * 2**10
_SKIP_BYTES: Final = 64 * 2**10
_XZ_MEMORY_BYTES: Final = 128 * 2**20  # xz -9 takes 65 MiB
_BLOCK: Final = 512
_BROKEN: Final = (
    tarfile.TarError,
    gzip.BadGzipFile,
    lzma.LZMAError,
    zlib.error,
    EOFError,
    OverflowError,
    RecursionError,
    ValueError,
)

T = TypeVar("T")


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def members(file: IO[bytes], kind: str, budget: Budget) -> Iterator[Member]:
    """Yield the members of a tar in its order; folders are none.

    Args:
        file: the archive, at its beginning.
        kind: ``tar``, ``gz`` or ``xz``.
        budget: charged with every byte that comes out of the decompressor.

    Raises:
        ArchiveError: it is broken, or a limit is reached.
    """
    stream = _Forward(_decompressed(file, kind), budget)
    archive: Any = stream.headers(
        lambda: tarfile.TarFile(fileobj=stream, errorlevel=2)  # type: ignore[arg-type] # as far as it is used
    )
    number = 0
    while (info := stream.headers(archive.next)) is not None:
        archive.members = []  # it would keep them all
        archive.pax_headers.clear()
        budget.take_members(1)
        number += 1
        if not info.isdir():
            yield _member(archive, stream, info, number)
    if stream.last != bytes(_BLOCK):
        # tarfile takes a broken header for the end.
        raise stream.failed("The archive is broken or cut off: it has no mark of its end.")
    stream.require_no_more()


def is_old_header(block: bytes) -> bool:
    """Tell whether bytes are the header of a tar from before the format had a magic number."""
    try:
        tarfile.TarInfo.frombuf(block[:_BLOCK], "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return False
    return True


def _member(
    archive: tarfile.TarFile, stream: "_Forward", info: tarfile.TarInfo, number: int
) -> Member:
    fingerprint = f"{number}:{info.size}:{info.mtime}"
    if info.issym() or info.islnk():
        refusal = "link", "It is a link, and links in archives are not followed."
    elif not info.isreg():
        refusal = "not_a_file", "It is no regular file."
    elif info.issparse():
        refusal = "unsupported_compression", "It is sparse; pack the archive without --sparse."
    else:
        return Member(
            info.name,
            fingerprint,
            open=lambda: _Part(archive, stream, info),  # type: ignore[arg-type, return-value]
        )
    return Member(info.name, fingerprint, refusal=refusal)


class _Part:
    """One member; what is wrong with its bytes is wrong with the archive."""

    def __init__(self, archive: tarfile.TarFile, stream: "_Forward", info: tarfile.TarInfo) -> None:
        self._stream = stream
        self._left = info.size
        self._part: Any = stream.guarded(lambda: archive.extractfile(info))

    def read(self, size: int) -> bytes:
        block: bytes = self._stream.guarded(lambda: self._part.read(min(size, _PART_BYTES)))
        self._left -= len(block)
        if not block and self._left:
            raise self._stream.failed("The archive ends within a member.")
        return block


class _Forward:
    """What comes out of a decompressor, for tarfile: seekable, but only to what lies ahead."""

    def __init__(self, source: _Readable, budget: Budget) -> None:
        self._source = source
        self._budget = budget
        self._position = 0
        self._failure: ArchiveError | None = None
        self._headers_left: int | None = None
        self.last = b""

    def headers(self, read: Callable[[], T]) -> T:
        """Let tarfile read what stands before one member.

        Raises:
            ArchiveError: the archive is broken, made to harm, or a limit is reached.
        """
        self._headers_left = _MOST_HEADERS_BYTES
        found: T = self.guarded(read)
        self._headers_left = None
        return found

    def require_no_more(self) -> None:
        """Require that nothing but zeros follows the end, as nobody would see what does.

        Raises:
            ArchiveError: something does, or a limit is reached.
        """
        while block := self.guarded(lambda: self._take(_SKIP_BYTES)):
            if block.strip(b"\0"):
                raise self.failed("Something follows the end of the archive; unpack it to see it.")

    def guarded(self, read: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever is read
        """Read something; after a failure everything fails, since nothing is in its place.

        Raises:
            ArchiveError: the archive is broken, or a limit is reached.
        """
        if self._failure is not None:
            raise self._failure
        try:
            return read()
        except ArchiveError as error:
            self._failure = error
            raise
        except (*_BROKEN, OSError) as error:
            raise self.failed("The archive is broken or cut off.") from error

    def failed(self, message: str) -> ArchiveError:
        """Return the error that everything fails with from now on."""
        self._failure = ArchiveError("archive_damaged", message)
        return self._failure

    def read(self, size: int) -> bytes:
        if size > _MOST_AT_ONCE_BYTES:
            raise ArchiveError("archive_damaged", "A header of the archive is far too long.")
        self.last = self._take(size)
        if self._headers_left is not None:
            self._headers_left -= len(self.last)
            if self._headers_left < 0 or _has_many_digits(self.last):
                raise ArchiveError("archive_damaged", "A header of the archive is made to harm.")
        return self.last

    def tell(self) -> int:
        return self._position

    def seek(self, position: int) -> int:
        if position < self._position:
            raise ArchiveError("archive_damaged", "The archive leads backwards.")
        while self._position < position:
            if not self._take(min(position - self._position, _SKIP_BYTES)):
                break
        return self._position

    def seekable(self) -> bool:
        return True

    def _take(self, size: int) -> bytes:
        parts = []
        while size > 0 and (part := self._source.read(size)):
            self._position += len(part)
            self._budget.take_bytes(len(part))
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def _has_many_digits(block: bytes) -> bool:
    return any(len(digits) > _MOST_DIGITS for digits in _DIGITS.findall(block))


class _Xz:
    """Decompresses xz, several streams in a row too, with bounded memory."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decompressor = self._new()

    def read(self, size: int) -> bytes:
        while True:
            fed = b""
            if self._decompressor.eof:
                fed = self._next_stream()
                if not fed:
                    return b""
                self._decompressor = self._new()
            elif self._decompressor.needs_input:
                fed = self._file.read(_SKIP_BYTES)
                if not fed:
                    raise EOFError("the stream is cut off")
            if part := self._decompressor.decompress(fed, size):
                return part

    def _next_stream(self) -> bytes:
        """Return the beginning of what follows a stream and its padding; empty: nothing does."""
        rest = self._decompressor.unused_data.lstrip(b"\0")
        while not rest and (block := self._file.read(_SKIP_BYTES)):
            rest = block.lstrip(b"\0")
        return rest

    @staticmethod
    def _new() -> lzma.LZMADecompressor:
        return lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=_XZ_MEMORY_BYTES)


def _decompressed(file: IO[bytes], kind: str) -> _Readable:
    if kind == "gz":
        return gzip.GzipFile(fileobj=file, mode="rb")
    return _Xz(file) if kind == "xz" else file
