"""A folder as a source: every entry below it, by name, and what its archives hold."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cli.ingest.archives import ArchiveLimits, has_archive_name, open_archive
from cli.ingest.content import ContentError, FileContent
from cli.ingest.found import Found, refused


@dataclass(frozen=True, slots=True)
class Folder:
    """All files below a folder, at any depth. Links are named and not followed."""

    root: Path
    limits: ArchiveLimits

    def scan(self) -> Iterator[Found]:
        yield from self._below(self.root, "")

    def _below(self, folder: Path, way: str) -> Iterator[Found]:
        try:
            with os.scandir(folder) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            yield refused(way or ".", "unreadable", f"The folder cannot be read: {error.strerror}.")
            return
        for entry in entries:
            key = f"{way}{entry.name}"
            try:
                # Not the entry's own: it keeps what it knew when the folder was read.
                status = os.lstat(entry.path)
            except OSError as error:
                yield refused(key, "unreadable", f"It cannot be read: {error.strerror}.")
                continue
            if stat.S_ISDIR(status.st_mode):
                yield from self._below(Path(entry.path), f"{key}/")
            elif stat.S_ISLNK(status.st_mode):
                yield refused(key, "link", "It is a link, and links in folders are not followed.")
            elif not stat.S_ISREG(status.st_mode):
                yield refused(key, "not_a_file", "It is no regular file.")
            else:
                yield from self._file(Path(entry.path), key, status)

    def _file(self, path: Path, key: str, status: os.stat_result) -> Iterator[Found]:
        content = FileContent(path, follow_link=False)
        if has_archive_name(path.name):
            try:
                archive = open_archive(content, key, fingerprint_of(status), self.limits)
            except ContentError as error:
                yield refused(key, error.code, error.message)
                return
            if archive is not None:
                yield from archive.scan()
                return
        yield Found(
            key=key, path=key, name=path.name, fingerprint=fingerprint_of(status), content=content
        )


def fingerprint_of(status: os.stat_result) -> str:
    """Return what changes when a file is written, or another one takes its place."""
    return f"{status.st_size}:{status.st_mtime_ns}:{status.st_ino}"
