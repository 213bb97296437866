"""How much an archive may hold: what is over a limit is refused by name, and never cut."""

from dataclasses import dataclass
from typing import Final

from cli.ingest.content import ContentError

_GIB: Final = 2**30
# Up to here no ratio is looked at: blank pages compress a thousand times.
_RATIO_FROM_BYTES: Final = 64 * 2**20


class ArchiveError(ContentError):
    """An archive cannot be read, or read on; ``is_of_all``: neither can the one that holds it."""

    def __init__(self, code: str, message: str, *, is_of_all: bool = False) -> None:
        super().__init__(code, message)
        self.is_of_all = is_of_all


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveLimits:
    """What one archive, with those in it, may hold.

    Attributes:
        max_members: files, folders and all else.
        max_bytes: of all members, uncompressed.
        max_member_bytes: of one member, uncompressed.
        max_ratio: uncompressed to compressed, once there are 64 MiB.
        max_nesting: archives in archives; 1: none in another.
    """

    max_members: int = 100_000
    max_bytes: int = 100 * _GIB
    max_member_bytes: int = 2 * _GIB
    max_ratio: int = 200
    max_nesting: int = 3


class Budget:
    """What is left of the limits of one archive and all archives in it."""

    def __init__(self, limits: ArchiveLimits, archive_bytes: int) -> None:
        self.limits = limits
        self._members = 0
        self._bytes = 0
        self._max_of_ratio = max(_RATIO_FROM_BYTES, limits.max_ratio * archive_bytes)

    def take_members(self, count: int) -> None:
        """Count members.

        Raises:
            ArchiveError: there are too many.
        """
        self._members += count
        if self._members > self.limits.max_members:
            raise ArchiveError(
                "archive_too_many_members",
                f"It has more than {self.limits.max_members:,} members (--max-members).",
                is_of_all=True,
            )

    def take_bytes(self, count: int) -> None:
        """Count uncompressed bytes.

        Raises:
            ArchiveError: there are too many, in all or for the size of the archive.
        """
        self._bytes += count
        if self._bytes > self.limits.max_bytes:
            raise ArchiveError(
                "archive_too_large",
                f"It holds more than {self.limits.max_bytes:,} bytes (--max-archive-bytes).",
                is_of_all=True,
            )
        if self._bytes > self._max_of_ratio:
            raise ArchiveError(
                "archive_ratio",
                f"It holds more than {self.limits.max_ratio:,} times its own size (--max-ratio).",
                is_of_all=True,
            )
