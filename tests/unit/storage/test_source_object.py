import traceback

import pytest

from storage import source_object
from storage.errors import StorageUnavailableError
from storage.memory import InMemoryObjectStore
from storage.object_store import StoredObject
from storage.source_object import SourceAddress, SourceObject, is_usable_name

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


@pytest.mark.parametrize("name", ["in/a.pdf", "in/Größe 5 %\n.pdf", "ü" * 512, ""])
def test_a_name_that_can_be_asked_for_and_written_down_is_usable(name: str) -> None:
    assert is_usable_name(name)


@pytest.mark.parametrize("name", ["in/a\0.pdf", "in/\ud800.pdf", "x" * 1_025, "ü" * 513])
def test_a_name_that_xml_postgres_or_s3_does_not_have_is_not_usable(name: str) -> None:
    assert not is_usable_name(name)


def test_what_has_the_name_of_a_folder_and_no_bytes_is_one() -> None:
    assert SourceObject(SourceAddress("scans", "in/"), None, "etag", 0).is_folder


@pytest.mark.parametrize(("key", "size_bytes"), [("in/", 1), ("in/empty.pdf", 0)])
def test_what_has_bytes_or_the_name_of_a_file_is_no_folder(key: str, size_bytes: int) -> None:
    assert not SourceObject(SourceAddress("scans", key), None, "etag", size_bytes).is_folder
