import hashlib
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.source_upload import SourceUpload
from storage.memory import InMemoryObjectStore
from workers.ocr.errors import EmptyDocumentError, FileTooLargeError, UnsupportedMediaTypeError
from workers.ocr.formats import MediaType

KEY = "documents/1/source"
PDF = b"%PDF-1.7\n" + bytes(range(256)) * 20


def keys_in(store: InMemoryObjectStore) -> list[str]:
    return [found.key for found in store.list("")]


@given(st.lists(st.integers(min_value=1, max_value=len(PDF) - 1), max_size=10))
def test_a_file_is_stored_the_same_however_it_arrives(places: list[int]) -> None:
    store = InMemoryObjectStore()
    upload = SourceUpload(store, KEY, max_bytes=len(PDF))
    edges = [0, *sorted(places), len(PDF)]

    for start, stop in itertools.pairwise(edges):
        upload.write(PDF[start:stop])
    source = upload.finish()

    assert store.get(KEY) == PDF
    assert source.size_bytes == len(PDF)
    assert source.sha256 == hashlib.sha256(PDF).hexdigest()
    assert source.media_type is MediaType.PDF


def test_a_file_shorter_than_what_is_sniffed_is_stored() -> None:
    store = InMemoryObjectStore()
    upload = SourceUpload(store, KEY, max_bytes=100)
    upload.write(b"%PDF-1.7")

    upload.finish()

    assert store.get(KEY) == b"%PDF-1.7"


def test_a_byte_too_many_is_refused_and_leaves_nothing() -> None:
    store = InMemoryObjectStore()
    upload = SourceUpload(store, KEY, max_bytes=len(PDF) - 1)
    upload.write(PDF[:-1])

    with pytest.raises(FileTooLargeError) as refusal:
        upload.write(PDF[-1:])
    upload.abort(refusal.value)

    assert (refusal.value.limit, refusal.value.actual) == (len(PDF) - 1, len(PDF))
    assert keys_in(store) == []


def test_an_unknown_format_is_refused_before_anything_is_stored() -> None:
    store = InMemoryObjectStore()
    upload = SourceUpload(store, KEY, max_bytes=10_000)

    with pytest.raises(UnsupportedMediaTypeError):
        upload.write(b"PK\x03\x04" * 1_000)

    assert keys_in(store) == []


def test_a_short_unknown_format_is_refused_at_its_end() -> None:
    store = InMemoryObjectStore()
    upload = SourceUpload(store, KEY, max_bytes=10_000)
    upload.write(b"hello")

    with pytest.raises(UnsupportedMediaTypeError):
        upload.finish()

    assert keys_in(store) == []


def test_an_empty_file_is_refused() -> None:
    with pytest.raises(EmptyDocumentError):
        SourceUpload(InMemoryObjectStore(), KEY, max_bytes=1).finish()


def test_an_aborted_file_leaves_nothing() -> None:
    store = InMemoryObjectStore()
    upload = SourceUpload(store, KEY, max_bytes=len(PDF))
    upload.write(PDF)

    upload.abort(ConnectionError())

    assert keys_in(store) == []


def test_an_abort_after_the_end_keeps_the_file() -> None:
    store = InMemoryObjectStore()
    upload = SourceUpload(store, KEY, max_bytes=len(PDF))
    upload.write(PDF)
    upload.finish()

    upload.abort(ConnectionError())

    assert keys_in(store) == [KEY]
