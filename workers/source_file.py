"""The source file of the document that a slot works on, fetched once for all its chunks."""

import hashlib
import tempfile
from pathlib import Path
from uuid import UUID

from storage import keys
from storage.errors import ObjectCorruptError
from storage.object_store import ObjectStore


class SourceFile:
    """Keeps the latest document's bytes on local disk; file names are ours, never a user's."""

    def __init__(self, store: ObjectStore, *, folder: Path | None = None) -> None:
        self._store = store
        self._folder = tempfile.TemporaryDirectory(prefix="pagefleet-source-", dir=folder)
        self._document_id: UUID | None = None

    def fetch(self, document_id: UUID, *, sha256: str) -> Path:
        """Return the path of a document's bytes; it is good until the next call.

        Raises:
            ObjectCorruptError: the bytes are not those that were accepted.
            StorageError: the store does not hand them out.
        """
        path = Path(self._folder.name) / str(document_id)
        if document_id == self._document_id:
            return path
        self._forget()
        digest = hashlib.sha256()
        # A name of its own for every fetch: the render child may still hold the file before.
        with path.open("wb") as file:
            for part in self._store.stream(keys.source_key(document_id)):
                digest.update(part)
                file.write(part)
        if digest.hexdigest() != sha256:
            path.unlink()
            raise ObjectCorruptError(f"the source of document {document_id} is not what was put")
        self._document_id = document_id
        return path

    def _forget(self) -> None:
        if self._document_id is not None:
            (Path(self._folder.name) / str(self._document_id)).unlink(missing_ok=True)
        self._document_id = None

    def close(self) -> None:
        """Remove the local copy."""
        self._folder.cleanup()
