"""What stands for one member of an archive."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import IO

from cli.ingest.content import SpooledContent


@dataclass(frozen=True, slots=True)
class Member:
    """One member.

    Attributes:
        name: as the archive has it; data, and never a path of this machine.
        fingerprint: tells it from others as long as the archive is the same.
        open: to be called before the next member is asked for. It raises ``ContentError``, and what
            it returns does so at the end of bytes that are not sound.
        refusal: code and message, where it cannot be read.
    """

    name: str
    fingerprint: str
    open: Callable[[], IO[bytes]] | None = None
    refusal: tuple[str, str] | None = None

    def spool(self, max_bytes: int) -> SpooledContent:
        """Read the member.

        Raises:
            ContentError: it cannot be read, or is too large.
        """
        assert self.open is not None  # noqa: S101 - who has a refusal is not asked
        return SpooledContent(self.open(), max_bytes=max_bytes)
