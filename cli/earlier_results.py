"""Which files an earlier run of ``pagefleet ocr`` has finished, for ``--skip-existing``."""

import hashlib
import json
from pathlib import Path
from typing import Any, Final

from cli.console import as_text
from workers.ocr.exports.formats import ExportFormat

# What stands before the text: names, hash, options, counts. A file name has 255 bytes at most.
_HEAD_BYTES: Final = 8 * 1024
# Quotes inside a JSON string are escaped, so that this is the key and no part of a name.
_TEXT_BEGINS: Final = b',"full_text":'


def is_done(path: Path, output: Path, *, output_format: ExportFormat) -> bool:
    """Tell whether ``output`` is the whole result of ``path`` as that is now.

    It must not be older than the file. Of a JSON result the head is read: it must be of a file of
    this name and these bytes, and all pages must have succeeded. The other formats do not say
    that of their file, so one that is not empty is enough; ``FileReader`` makes one that lacks a
    page older than the file.

    Args:
        path: a file to read.
        output: where its result goes.
        output_format: what is written there.
    """
    try:
        source, result = path.stat(), output.stat()
        if result.st_mtime_ns < source.st_mtime_ns or not result.st_size:
            return False
        if output_format != "json":
            return True
        header = _header(output)
        expected = {
            **_source(header),
            "filename": as_text(path.name),
            "size_bytes": source.st_size,
        }
        if header.get("state") != "succeeded" or header.get("source") != expected:
            return False
        # Last, as it reads the file: folders of one scanner hold files of equal names and sizes.
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest() == expected.get("sha256")
    except OSError:
        return False  # not there, or not to be read: the run finds out which


def _header(output: Path) -> dict[str, Any]:
    """Return the fields before the text, none for what is no result of ours."""
    with output.open("rb") as stream:
        head, found, _ = stream.read(_HEAD_BYTES).partition(_TEXT_BEGINS)
    if not found:
        return {}
    try:
        header = json.loads(head + b"}")
    except ValueError:
        return {}
    return header if isinstance(header, dict) else {}


def _source(header: dict[str, Any]) -> dict[str, Any]:
    source = header.get("source")
    return source if isinstance(source, dict) else {}
