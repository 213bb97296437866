"""Files that are there whole or not at all, whatever ends this process."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def whole_file(path: Path, *, changed_ns: int | None = None) -> Iterator[BinaryIO]:
    """Open a file so that a reader, or a second run after a crash, finds all of it or none.

    Args:
        path: of the file; its folder is made.
        changed_ns: when it shall have been changed, nanoseconds since 1970; None for now.

    Yields:
        What takes its content; leaving by an exception leaves what was there before.

    Raises:
        OSError: the folder cannot be made or written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # A name of its own, since one made of the file's could be too long where that is not.
    handle, unfinished = tempfile.mkstemp(dir=path.parent, prefix=".pagefleet-")
    try:
        with os.fdopen(handle, "w+b") as stream:
            yield stream
            stream.flush()
            # Else the name may be on the disk before the bytes, when the power fails.
            os.fsync(stream.fileno())
        # mkstemp lets nobody else read; a result is as readable as any file of this user.
        umask = os.umask(0)
        os.umask(umask)
        Path(unfinished).chmod(0o666 & ~umask)
        if changed_ns is not None:
            os.utime(unfinished, ns=(changed_ns, changed_ns))
        Path(unfinished).replace(path)
    except BaseException:
        Path(unfinished).unlink(missing_ok=True)
        raise
