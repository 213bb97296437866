from datetime import UTC, datetime

import pytest

from api.ledger import DocumentEntry
from api.views import batch_state, document_view
from db.batches import BatchCounts
from db.ids import new_id
from db.listed import Listed
from db.models import Batch, Document
from db.states import BatchState, DocumentState, PageState
from tests.support.rows import make_document


def document_of(**values: object) -> Document:
    document = make_document(**values)
    document.created_at = datetime(2026, 1, 1, tzinfo=UTC)
    return document


DONE = Listed(is_open=False, found=2, duplicates=0, skipped=0, size_bytes=2)
UNDER_WAY = Listed(is_open=True, found=2, duplicates=0, skipped=0, size_bytes=2)


def counts_of(listed: Listed | None = None, **by_state: int) -> BatchCounts:
    documents = {DocumentState(state): count for state, count in by_state.items()}
    return BatchCounts(documents=documents, pages=0, pages_ok=0, pages_failed=0, listed=listed)


@pytest.mark.parametrize(
    ("stored", "counts", "state"),
    [
        ("open", counts_of(), "open"),
        ("open", counts_of(queued=1), "running"),
        ("open", counts_of(succeeded=5, assembling=1), "running"),
        ("open", counts_of(succeeded=1, partly_succeeded=1, failed=1, cancelled=1), "finished"),
        ("cancelled", counts_of(succeeded=1, queued=1), "cancelled"),
        ("finished", counts_of(), "finished"),
        ("open", counts_of(UNDER_WAY), "listing"),
        ("open", counts_of(UNDER_WAY, succeeded=2), "listing"),
        ("open", counts_of(DONE), "finished"),
        ("open", counts_of(DONE, queued=1, succeeded=1), "running"),
        ("open", counts_of(DONE, succeeded=2), "finished"),
        ("failed", counts_of(DONE, queued=1), "running"),
        ("failed", counts_of(DONE, succeeded=1), "failed"),
        ("cancelled", counts_of(DONE, queued=1), "cancelled"),
    ],
)
def test_the_state_of_a_batch_is_that_of_its_documents(
    stored: str, counts: BatchCounts, state: str
) -> None:
    batch = Batch(id=new_id(), tenant="t", name="n", state=stored)

    assert batch_state(batch, counts) == BatchState(state)


def test_the_progress_of_an_open_document_is_counted_from_its_pages() -> None:
    document = document_of(state="recognizing", page_count=10)
    counts = {PageState.QUEUED: 6, PageState.OK: 3, PageState.FAILED: 1}

    progress = document_view(DocumentEntry(document, counts)).progress

    assert (progress.pages, progress.ok, progress.failed, progress.left) == (10, 3, 1, 6)


def test_the_progress_of_a_document_that_is_not_split_is_unknown() -> None:
    progress = document_view(DocumentEntry(document_of(), None)).progress

    assert (progress.pages, progress.left) == (None, None)


def test_the_progress_of_a_final_document_is_its_own() -> None:
    document = document_of(
        state="partly_succeeded", page_count=3, pages_ok=1, pages_failed=1, pages_skipped=1
    )

    progress = document_view(DocumentEntry(document, None)).progress

    assert (progress.ok, progress.failed, progress.skipped, progress.left) == (1, 1, 1, 0)


def test_a_result_is_linked_once_it_is_there() -> None:
    final = document_of(state="succeeded", result_key="k")

    links = document_view(DocumentEntry(final, None)).links

    assert links.result == f"/v1/documents/{final.id}/result?format=json"
    assert links.text == f"/v1/documents/{final.id}/result?format=text"


def test_a_document_without_a_result_links_none() -> None:
    links = document_view(DocumentEntry(document_of(state="failed"), None)).links

    assert (links.result, links.text) == (None, None)


def test_an_error_has_the_sentence_of_its_code() -> None:
    failed = document_of(state="failed", error_code="encrypted")

    error = document_view(DocumentEntry(failed, None)).error

    assert error is not None
    assert error.code == "encrypted"
    assert "password" in error.message


def test_a_document_that_was_served_says_when_it_was_read() -> None:
    read_at = datetime(2026, 1, 2, tzinfo=UTC)
    served = document_of(state="succeeded", cached_from=new_id(), read_at=read_at)

    view = document_view(DocumentEntry(served, None))

    assert (view.cached, view.read_at) == (True, read_at)
    assert document_view(DocumentEntry(document_of(), None)).cached is False


def test_a_document_has_the_warnings_of_its_options_once_it_is_split() -> None:
    options = {"mode": "auto", "text_order": "reading", "dpi": 200, "pages": "1-9"}

    split = document_view(DocumentEntry(document_of(options=options, page_count=3), None))
    queued = document_view(DocumentEntry(document_of(options=options), None))

    assert split.warnings == ["pages_beyond_end"]
    assert queued.warnings == []
    assert queued.options == {**options, "max_pages": None, "languages": []}
