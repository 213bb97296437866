import traceback

import pytest

from storage import source_object
from storage.errors import StorageUnavailableError
from storage.memory import InMemoryObjectStore
from storage.object_store import StoredObject
from storage.source_object import SourceAddress

KEY = "in/letter to my doctor.pdf"


class SilentObjectStore(InMemoryObjectStore):
    """Names the key that it cannot reach, as the S3 store does."""

    def other_bucket(self, name: str) -> "SilentObjectStore":
        del name
        return self

    def head(self, key: str, *, version_id: str | None = None) -> StoredObject:
        del version_id
        raise StorageUnavailableError(f"SlowDown for {key}")


def test_what_a_failed_task_shows_names_no_object_of_a_user() -> None:
    with pytest.raises(StorageUnavailableError) as away:
        source_object.describe(SilentObjectStore(), SourceAddress("scans", KEY))

    # As Celery writes it down, and Flower shows it.
    shown = "".join(traceback.format_exception(away.value))
    assert "scans" in shown
    assert KEY not in shown
