"""The source file of the document that a slot works on, fetched once for all its chunks."""

import fcntl
import hashlib
import os
import shutil
import tempfile
from pathlib import Path
from uuid import UUID

from storage import keys
from storage.errors import ObjectCorruptError
from storage.object_store import ObjectStore

_LOCK_NAME = "in-use"


class SourceFile:
    """Keeps the latest document's bytes on local disk; file names are ours, never a user's.

    A pool child never ends in order, so nobody removes what it leaves. Each slot holds a lock in
    its folder for as long as it lives, and a new slot removes the folders whose lock is free.
    """

    def __init__(self, store: ObjectStore, *, folder: Path) -> None:
        self._store = store
        self._parent = folder
        if folder.exists():
            _remove_abandoned(folder)
        self._folder, self._lock = _new_folder(folder)
        self._path: Path | None = None

    def fetch(self, document_id: UUID, *, sha256: str, key: str | None = None) -> Path:
        """Return the path of a document's bytes; it is good until the next call.

        Args:
            document_id: whose they are.
            sha256: of the bytes.
            key: of the object that holds them; None: the document's source as it came.

        Raises:
            ObjectCorruptError: the bytes are not those that were accepted.
            StorageError: the store does not hand them out.
        """
        if not _is_there(self._lock):
            # Whoever cleans the disk up must not cost this slot all documents to come.
            os.close(self._lock)
            self._folder, self._lock = _new_folder(self._parent)
        # A name of its own for all bytes: the render child may still hold the file before.
        path = self._folder / f"{document_id}-{sha256}"
        if path == self._path:
            return path
        self._forget()
        try:
            self._download(key or keys.source_key(document_id), path, sha256=sha256)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        self._path = path
        return path

    def close(self) -> None:
        """Remove the local copy."""
        shutil.rmtree(self._folder)
        os.close(self._lock)

    def _download(self, key: str, path: Path, *, sha256: str) -> None:
        digest = hashlib.sha256()
        with path.open("wb") as file:
            for part in self._store.stream(key):
                digest.update(part)
                file.write(part)
        if digest.hexdigest() != sha256:
            raise ObjectCorruptError(f"{key} is not what was put")

    def _forget(self) -> None:
        if self._path is not None:
            self._path.unlink(missing_ok=True)
        self._path = None


def _new_folder(parent: Path) -> tuple[Path, int]:
    """Return a new folder and the descriptor that holds its lock."""
    parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    while True:
        folder = Path(tempfile.mkdtemp(dir=parent))
        lock = _try_lock(folder)
        if lock is None:
            continue  # Another slot takes the folder for an abandoned one, and removes it.
        if _is_there(lock):
            return folder, lock
        os.close(lock)  # It has, and let go of the lock between our opening it and holding it.


def _try_lock(folder: Path) -> int | None:
    """Return a descriptor that holds the folder's lock; None: its slot lives, or it is gone."""
    try:
        lock = os.open(folder / _LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock


def _is_there(lock: int) -> bool:
    """Say whether the file of a lock still has a name, and so its folder."""
    return os.fstat(lock).st_nlink > 0


def _remove_abandoned(parent: Path) -> None:
    for folder in parent.iterdir():
        lock = _try_lock(folder) if (folder / _LOCK_NAME).exists() else None
        if lock is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)
