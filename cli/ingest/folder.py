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
        # A list and no recursion: folders may be nested deeper than calls. The last is the next.
        ahead = [""]
        while ahead:
            key = ahead.pop()
            path = self.root / key
            try:
                # Not what a listing said: it keeps what it knew when the folder was read.
                status = path.lstat() if key else path.stat()
                if stat.S_ISDIR(status.st_mode):
                    way = f"{key}/" if key else ""
                    names = sorted((entry.name for entry in path.iterdir()), reverse=True)
                    ahead += [f"{way}{name}" for name in names]
                    continue
            except OSError as error:
                yield refused(key or ".", "unreadable", f"It cannot be read: {error.strerror}.")
                continue
            if stat.S_ISLNK(status.st_mode):
                yield refused(key, "link", "It is a link, and links in folders are not followed.")
            elif not stat.S_ISREG(status.st_mode):
                yield refused(key, "not_a_file", "It is no regular file.")
            else:
                yield from self._file(path, key, status)

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
