"""A source in a bucket of the user's is copied once, and is then like any other."""

import hashlib
from uuid import UUID

import pytest

from db import documents
from db.ids import new_id
from db.states import DocumentState
from storage import keys, source_object
from storage.source_object import SourceAddress
from tests.support.pipeline import Pipeline, tiff_of
from tests.support.rows import NOT_DUE_S, make_document

TIFF = tiff_of(3)


def accept(pipeline: Pipeline, body: bytes = TIFF) -> UUID:
    scans = pipeline.store.other_bucket("scans")
    scans.put("in/a.tif", body, media_type="image/tiff")
    source = source_object.describe(pipeline.store, SourceAddress("scans", "in/a.tif"))
    document = make_document(
        id=new_id(),
        source=source.to_row(),
        media_type="application/octet-stream",
        sha256="",
        size_bytes=source.size_bytes,
    )
    with pipeline.database.transaction() as session:
        documents.insert(session, document, dispatch_after_s=NOT_DUE_S)
    return document.id


def replace(pipeline: Pipeline, body: bytes) -> None:
    pipeline.store.other_bucket("scans").put("in/a.tif", body, media_type="image/tiff")


def test_an_object_goes_in_and_its_text_comes_out(pipeline: Pipeline) -> None:
    document_id = accept(pipeline)

    state = pipeline.finish(document_id)

    row = pipeline.document(document_id)
    assert state == DocumentState.SUCCEEDED
    assert (row.media_type, row.sha256) == ("image/tiff", hashlib.sha256(TIFF).hexdigest())
    assert pipeline.store.get(keys.source_key(document_id)) == TIFF
    assert pipeline.result(document_id)["source"]["sha256"] == row.sha256


def test_what_was_copied_is_read_whatever_becomes_of_the_object(pipeline: Pipeline) -> None:
    document_id = accept(pipeline)
    pipeline.split(document_id)
    pipeline.store.other_bucket("scans").delete(["in/a.tif"])

    for chunk_id in pipeline.chunk_ids(document_id):
        pipeline.recognize(chunk_id)

    assert pipeline.assemble(document_id) == DocumentState.SUCCEEDED


def test_an_object_that_was_replaced_before_it_was_copied_fails_the_document(
    pipeline: Pipeline,
) -> None:
    document_id = accept(pipeline)
    replace(pipeline, tiff_of(2))

    pipeline.split(document_id)

    row = pipeline.document(document_id)
    assert (row.state, row.error_code) == (DocumentState.FAILED, "source_changed")
    assert list(pipeline.store.list(keys.document_prefix(document_id))) == []


def test_an_object_that_is_gone_fails_the_document(pipeline: Pipeline) -> None:
    document_id = accept(pipeline)
    pipeline.store.other_bucket("scans").delete(["in/a.tif"])

    pipeline.split(document_id)

    row = pipeline.document(document_id)
    assert (row.state, row.error_code) == (DocumentState.FAILED, "source_not_found")


def accept_unseen(pipeline: Pipeline) -> UUID:
    """Do what a listing does with an object that is named, and was not there."""
    source = source_object.unseen(SourceAddress("scans", "in/a.tif"))
    document = make_document(
        id=new_id(), source=source.to_row(), sha256="", size_bytes=source.size_bytes
    )
    with pipeline.database.transaction() as session:
        documents.insert(session, document, dispatch_after_s=NOT_DUE_S)
    return document.id


def test_an_object_that_nobody_has_seen_is_looked_for_when_it_is_read(pipeline: Pipeline) -> None:
    document_id = accept_unseen(pipeline)
    pipeline.store.other_bucket("scans").put("in/a.tif", TIFF, media_type="image/tiff")

    state = pipeline.finish(document_id)

    assert state == DocumentState.SUCCEEDED
    assert pipeline.document(document_id).size_bytes == len(TIFF)


def test_an_object_that_nobody_has_ever_seen_fails_the_document(pipeline: Pipeline) -> None:
    document_id = accept_unseen(pipeline)

    pipeline.split(document_id)

    row = pipeline.document(document_id)
    assert (row.state, row.error_code) == (DocumentState.FAILED, "source_not_found")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "empty"),
        (b"some letters", "unsupported_media_type"),
        (b"%PDF-" + b"x" * 2**20, "file_too_large"),
    ],
)
def test_a_file_at_fault_fails_the_document_as_an_upload_would(
    pipeline: Pipeline, body: bytes, code: str
) -> None:
    document_id = accept(pipeline, body)

    pipeline.split(document_id)

    row = pipeline.document(document_id)
    assert (row.state, row.error_code) == (DocumentState.FAILED, code)
