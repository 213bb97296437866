"""Archives as sources: their members are read one by one, and never written under their names."""

import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import IO, Final

from cli.ingest import tar_members, zip_members
from cli.ingest.archive_limits import ArchiveError, ArchiveLimits, Budget
from cli.ingest.content import ContentError, FileContent, SpooledContent
from cli.ingest.found import Found, refused
from cli.ingest.members import Member

__all__ = ["Archive", "ArchiveLimits", "has_archive_name", "open_archive"]

_ENDINGS: Final = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz")
_ZIP_MAGICS: Final = (b"PK\x03\x04", b"PK\x05\x06")
_HEAD_BYTES: Final = 512
# Between an archive and its member, in keys and reports.
_SEPARATOR: Final = "!/"


@dataclass(frozen=True, slots=True)
class Archive:
    """The members of an archive, those of archives in it included."""

    content: FileContent
    key: str
    fingerprint: str
    kind: str
    limits: ArchiveLimits

    def scan(self) -> Iterator[Found]:
        count = 0
        try:
            with self.content.opened() as file:
                budget = Budget(self.limits, os.fstat(file.fileno()).st_size)
                for found in _scan(file, self.kind, self.key, self.fingerprint, budget, depth=1):
                    count += 1
                    yield found
        except ContentError as error:
            yield refused(self.key, error.code, error.message)
            return
        if not count:
            yield refused(self.key, "empty", "The archive has no files.")


def has_archive_name(name: str) -> bool:
    """Say whether a name is an archive's; office files are archives by content, not by name."""
    return name.lower().endswith(_ENDINGS)


def open_archive(
    content: FileContent, key: str, fingerprint: str, limits: ArchiveLimits
) -> Archive | None:
    """Return the archive that a file is; None: it is none by its content.

    Raises:
        ContentError: it cannot be read.
    """
    with content.opened() as file:
        kind = _kind_of(file)
    return None if kind is None else Archive(content, key, fingerprint, kind, limits)


def _kind_of(file: IO[bytes]) -> str | None:
    """Tell from its content what a file at its beginning is: zip, tar, gz, xz, or None."""
    head = file.read(_HEAD_BYTES)
    file.seek(0)
    if head.startswith(_ZIP_MAGICS):
        return "zip"
    if head.startswith(b"\x1f\x8b"):
        return "gz"
    if head.startswith(b"\xfd7zXZ\x00"):
        return "xz"
    if head[257:262] == b"ustar" or tar_members.is_old_header(head) or head == bytes(_HEAD_BYTES):
        return "tar"
    return None


def _scan(
    file: IO[bytes], kind: str, key: str, fingerprint: str, budget: Budget, *, depth: int
) -> Iterator[Found]:
    """Yield what is in an archive.

    Raises:
        ArchiveError: it cannot be read on, or a limit is reached.
    """
    if kind == "zip":
        members = zip_members.members(file, budget)
    else:
        members = tar_members.members(file, kind, budget)
    for member in members:
        member_key = f"{key}{_SEPARATOR}{member.name}"
        if member.refusal is not None:
            yield refused(member_key, *member.refusal)
        elif has_archive_name(member.name):
            yield from _nested(member, member_key, fingerprint, budget, depth=depth)
        else:
            yield _found(member, member_key, fingerprint, budget)


def _found(member: Member, key: str, fingerprint: str, budget: Budget) -> Found:
    return Found(
        key=key,
        path=key,
        name=_last_part(member.name),
        # An archive that is not written again has the same members in the same order.
        fingerprint=f"{fingerprint}/{member.fingerprint}",
        load=lambda: member.spool(budget.limits.max_member_bytes),
    )


def _nested(
    member: Member, key: str, fingerprint: str, budget: Budget, *, depth: int
) -> Iterator[Found]:
    if depth >= budget.limits.max_nesting:
        yield refused(
            key,
            "archive_too_deep",
            f"Archives in archives are read {budget.limits.max_nesting} deep (--max-nesting).",
        )
        return
    try:
        content = member.spool(budget.limits.max_member_bytes)
    except ContentError as error:
        yield refused(key, error.code, error.message)
        return
    kind = _kind_of_spooled(content)
    if kind is None:
        yield Found(key=key, path=key, name=_last_part(member.name), load=lambda: content)
        return
    inner = f"{fingerprint}/{member.fingerprint}"
    count = 0
    with closing(content):
        try:
            for found in _scan(content.file, kind, key, inner, budget, depth=depth + 1):
                count += 1
                yield found
        except ArchiveError as error:
            if error.is_of_all:
                raise
            yield refused(key, error.code, error.message)
            return
    if not count:
        yield refused(key, "empty", "The archive has no files.")


def _kind_of_spooled(content: SpooledContent) -> str | None:
    """Tell what a member is."""
    content.file.seek(0)
    return _kind_of(content.file)


def _last_part(name: str) -> str:
    return name.replace("\\", "/").rstrip("/").rpartition("/")[2] or "document"
