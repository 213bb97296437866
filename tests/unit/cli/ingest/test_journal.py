import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.errors import CommandError
from cli.ingest import journal as states
from cli.ingest.found import Found
from cli.ingest.journal import Journal
from db.ids import new_id


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path / "journal.sqlite") as kept:
        yield kept


def begin(kept: Journal, name: str) -> bytes:
    key = kept.begin(Found(key=name, path=name, name=name))
    assert key is not None
    return key


def claim(kept: Journal, name: str) -> bytes:
    key = begin(kept, name)
    kept.claim(key, filename=name, identity="1f", sha256="2e", size_bytes=3)
    return key


def test_the_first_to_claim_a_content_owns_it_whichever_is_sent(kept: Journal) -> None:
    first, second = claim(kept, "a.pdf"), claim(kept, "b.pdf")
    document_id = new_id()

    assert kept.note_document(second, identity="1f", document_id=document_id) == states.DUPLICATE
    assert kept.document_of("1f") == document_id
    assert kept.note_document(first, identity="1f", document_id=document_id) == states.SENT


def test_another_file_stands_for_a_content_whose_owner_could_not_be_sent(kept: Journal) -> None:
    first, second = claim(kept, "a.pdf"), claim(kept, "b.pdf")
    kept.note_failure(first, state=states.FAILED, code="internal", message="")

    assert kept.note_document(second, identity="1f", document_id=new_id()) == states.SENT


def test_a_file_that_is_gone_owns_no_content_in_a_later_run(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    with Journal(path) as before:
        claim(before, "a.pdf")

    with Journal(path) as kept:
        only = claim(kept, "b.pdf")
        assert kept.note_document(only, identity="1f", document_id=new_id()) == states.SENT


def test_it_is_not_closed_under_a_thread_that_writes(tmp_path: Path) -> None:
    kept = Journal(tmp_path / "journal.sqlite")
    writes, may_end = threading.Event(), threading.Event()

    def records() -> Iterator[dict[str, Any]]:
        writes.set()
        may_end.wait(timeout=30)
        yield from ()

    writer = threading.Thread(target=kept.learn, args=(records(),))
    closer = threading.Thread(target=kept.__exit__)
    writer.start()
    assert writes.wait(timeout=30)
    closer.start()
    closer.join(timeout=0.2)
    is_closed_under_the_writer = not closer.is_alive()
    may_end.set()
    writer.join(timeout=30)
    closer.join(timeout=30)

    assert not is_closed_under_the_writer
    assert not closer.is_alive()
    with pytest.raises(CommandError, match="cannot be used"):
        kept.counts()


def test_whoever_leaves_its_outcomes_half_read_can_close_it(tmp_path: Path) -> None:
    with Journal(tmp_path / "journal.sqlite") as kept:
        claim(kept, "a.pdf")
        claim(kept, "b.pdf")
        outcomes = kept.outcomes()
        assert next(outcomes).path == b"a.pdf"

    with pytest.raises(CommandError, match="cannot be used"):
        next(outcomes)
