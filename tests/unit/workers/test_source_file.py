import hashlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import UUID

import pytest

from db.ids import new_id
from storage import keys
from storage.errors import ObjectCorruptError, ObjectNotFoundError, StorageUnavailableError
from storage.memory import InMemoryObjectStore
from workers.source_file import SourceFile

SLOTS_AT_ONCE = 200


class CountingObjectStore(InMemoryObjectStore):
    """Counts how often an object was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.streamed = 0

    def stream(self, key: str, *, part_bytes: int = 4) -> Iterator[bytes]:
        self.streamed += 1
        return super().stream(key, part_bytes=part_bytes)


@pytest.fixture
def store() -> CountingObjectStore:
    return CountingObjectStore()


@pytest.fixture
def source_file(store: CountingObjectStore, tmp_path: Path) -> Iterator[SourceFile]:
    source_file = SourceFile(store, folder=tmp_path)
    yield source_file
    source_file.close()


def put(store: InMemoryObjectStore, body: bytes) -> tuple[UUID, str]:
    document_id = new_id()
    store.put(keys.source_key(document_id), body, media_type="application/pdf")
    return document_id, hashlib.sha256(body).hexdigest()


def test_a_source_is_fetched_whole(store: CountingObjectStore, source_file: SourceFile) -> None:
    document_id, sha256 = put(store, b"some pages")

    path = source_file.fetch(document_id, sha256=sha256)

    assert path.read_bytes() == b"some pages"


def test_the_chunks_of_a_document_share_one_fetch(
    store: CountingObjectStore, source_file: SourceFile
) -> None:
    document_id, sha256 = put(store, b"some pages")

    paths = {source_file.fetch(document_id, sha256=sha256) for _ in range(3)}

    assert (len(paths), store.streamed) == (1, 1)


def test_the_file_before_stays_whole_for_whoever_still_reads_it(
    store: CountingObjectStore, source_file: SourceFile
) -> None:
    first, second = put(store, b"the first"), put(store, b"2nd")
    with source_file.fetch(first[0], sha256=first[1]).open("rb") as held:
        source_file.fetch(second[0], sha256=second[1])

        content = held.read()

    assert content == b"the first"


def test_only_one_source_is_kept(
    store: CountingObjectStore, source_file: SourceFile, tmp_path: Path
) -> None:
    for body in (b"a", b"b", b"c"):
        document_id, sha256 = put(store, body)
        source_file.fetch(document_id, sha256=sha256)

    assert [path.read_bytes() for path in sources_in(tmp_path)] == [b"c"]


def test_bytes_that_changed_are_refused_and_not_kept(
    store: CountingObjectStore, source_file: SourceFile, tmp_path: Path
) -> None:
    document_id, _ = put(store, b"changed")

    with pytest.raises(ObjectCorruptError):
        source_file.fetch(document_id, sha256="0" * 64)

    assert sources_in(tmp_path) == []


class BreakingObjectStore(InMemoryObjectStore):
    """Breaks off after the first part of every object."""

    def stream(self, key: str, *, part_bytes: int = 1) -> Iterator[bytes]:
        yield next(super().stream(key, part_bytes=part_bytes))
        raise StorageUnavailableError(key)


def test_a_fetch_that_broke_off_leaves_nothing(tmp_path: Path) -> None:
    store = BreakingObjectStore()
    document_id, sha256 = put(store, b"some pages")
    source_file = SourceFile(store, folder=tmp_path)

    with pytest.raises(StorageUnavailableError):
        source_file.fetch(document_id, sha256=sha256)

    assert sources_in(tmp_path) == []


LEAVE_A_SOURCE = """
import hashlib, os, sys
from pathlib import Path
from uuid import UUID
from storage import keys
from storage.memory import InMemoryObjectStore
from workers.source_file import SourceFile
store = InMemoryObjectStore()
document_id = UUID(int=1)
store.put(keys.source_key(document_id), b"left", media_type="application/pdf")
source_file = SourceFile(store, folder=Path(sys.argv[1]))
source_file.fetch(document_id, sha256=hashlib.sha256(b"left").hexdigest())
os._exit(0)
"""


def test_what_a_dead_slot_left_is_removed_by_the_next(tmp_path: Path) -> None:
    subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", LEAVE_A_SOURCE, str(tmp_path)], check=True
    )
    left = sources_in(tmp_path)

    SourceFile(InMemoryObjectStore(), folder=tmp_path).close()

    assert (len(left), sources_in(tmp_path)) == (1, [])


def test_what_a_living_slot_holds_is_not_removed(
    store: CountingObjectStore, source_file: SourceFile, tmp_path: Path
) -> None:
    document_id, sha256 = put(store, b"held")
    path = source_file.fetch(document_id, sha256=sha256)

    SourceFile(store, folder=tmp_path).close()

    assert path.read_bytes() == b"held"


def test_slots_that_start_at_the_same_time_leave_each_other_their_folders(
    store: CountingObjectStore, tmp_path: Path
) -> None:
    document_id, sha256 = put(store, b"held")
    with ThreadPoolExecutor(8) as pool:
        slots = list(pool.map(lambda _: SourceFile(store, folder=tmp_path), range(SLOTS_AT_ONCE)))

    folders = [path.parent for path in tmp_path.glob("*/in-use")]
    for slot in slots:
        slot.fetch(document_id, sha256=sha256)
        slot.close()

    assert len(folders) == SLOTS_AT_ONCE


def test_folders_that_somebody_removed_are_made_again(
    store: CountingObjectStore, source_file: SourceFile
) -> None:
    document_id, sha256 = put(store, b"some pages")
    shutil.rmtree(source_file.fetch(document_id, sha256=sha256).parent.parent)

    again = source_file.fetch(document_id, sha256=sha256)

    assert again.read_bytes() == b"some pages"


def sources_in(folder: Path) -> list[Path]:
    """Return the document files below a folder; those of locks are no documents."""
    return [path for path in folder.rglob("*") if path.is_file() and path.name != "in-use"]


def test_a_source_that_is_gone_is_named(source_file: SourceFile) -> None:
    with pytest.raises(ObjectNotFoundError):
        source_file.fetch(new_id(), sha256="0" * 64)
