"""Which kind of source an argument names."""

import os
from pathlib import Path
from typing import Final

from cli.console import shown
from cli.errors import EXIT_USAGE, CommandError
from cli.ingest.archives import ArchiveLimits, has_archive_name, open_archive
from cli.ingest.content import ContentError, FileContent
from cli.ingest.folder import Folder, fingerprint_of
from cli.ingest.found import Source
from cli.ingest.manifest import Manifest

_MANIFEST_ENDINGS: Final = frozenset({".csv", ".ndjson", ".jsonl"})
_REMEDY: Final = (
    "Name a folder, a manifest (.csv, .ndjson), or an archive (.zip, .tar, .tar.gz, .tar.xz)."
)


def source_of(path: Path, limits: ArchiveLimits) -> Source:
    """Return what a path names.

    Raises:
        CommandError: it is no folder, manifest or archive.
    """
    try:
        status = os.stat(path)  # noqa: PTH116 - Path.stat raises the same
    except (OSError, ValueError) as error:
        raise _unusable(path, f"it cannot be read ({error})") from error
    if os.path.isdir(path):  # noqa: PTH112 - likewise
        return Folder(path, limits)
    if path.suffix.lower() in _MANIFEST_ENDINGS:
        return Manifest(path)
    content = FileContent(path, follow_link=True)
    try:
        archive = open_archive(content, path.name, fingerprint_of(status), limits)
    except ContentError as error:
        raise _unusable(path, error.message) from error
    if archive is None:
        raise _unusable(
            path,
            "its content is no archive" if has_archive_name(path.name) else "its name says neither",
        )
    return archive


def _unusable(path: Path, why: str) -> CommandError:
    return CommandError(f"{shown(path)} cannot be ingested: {why}", _REMEDY, exit_code=EXIT_USAGE)
