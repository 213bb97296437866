"""A password is kept for the split alone, whatever ends that."""

from collections.abc import Callable

import pytest

from db import cancelling, deleting, document_sources, documents
from db.documents import DocumentClaim
from db.engine import Database, Session
from db.errors import StaleStateError
from db.models import SourcePassword
from db.planned_chunks import plan_chunks
from tests.support.rows import TENANT, add_document, claim_split

PASSWORD = "kestrel"  # noqa: S105 - made up


def claimed(database: Database, *, lease_s: float = 60) -> DocumentClaim:
    with database.transaction() as session:
        document_id = add_document(session)
        document_sources.keep_password(session, document_id, PASSWORD)
        return claim_split(session, document_id, lease_s=lease_s)


def is_kept(database: Database, claim: DocumentClaim) -> bool:
    with database.transaction() as session:
        return document_sources.find_password(session, claim.document_id) == PASSWORD


def split(session: Session, claim: DocumentClaim) -> None:
    planned = plan_chunks(range(1), chunk_pages=1)
    documents.start_recognizing(session, claim, page_count=1, chunks=planned, chord_grace_s=None)


@pytest.mark.parametrize(
    "end",
    [
        split,
        lambda session, claim: documents.fail(session, claim, code="encrypted", detail="x"),
        lambda session, claim: cancelling.cancel(session, claim.document_id, tenant=TENANT),
        lambda session, claim: deleting.mark(
            session, claim.document_id, tenant=TENANT, writers_s=1
        ),
        lambda session, claim: documents.give_up(
            session, claim.document_id, code="worker_lost", detail="x", max_attempts=0
        ),
        lambda session, claim: document_sources.record_unlocked(
            session, claim, unlocked_key="k", sha256="0" * 64
        ),
    ],
    ids=["split", "failed", "cancelled", "deleted", "given up", "unlocked"],
)
def test_a_password_goes_with_what_ends_the_split(
    database: Database, end: Callable[[Session, DocumentClaim], object]
) -> None:
    claim = claimed(database, lease_s=-1)

    with database.transaction() as session:
        end(session, claim)

    assert not is_kept(database, claim)


def test_a_password_goes_with_a_document_that_was_never_begun(database: Database) -> None:
    with database.transaction() as session:
        document_id = add_document(session)
        document_sources.keep_password(session, document_id, PASSWORD)

    with database.transaction() as session:
        cancelling.cancel(session, document_id, tenant=TENANT)

    with database.transaction() as session:
        assert document_sources.find_password(session, document_id) is None


def test_a_password_stays_while_a_split_is_put_back(database: Database) -> None:
    claim = claimed(database)

    with database.transaction() as session:
        documents.put_back(session, claim, delay_s=0, is_excused=True)

    assert is_kept(database, claim)


def test_an_outdated_attempt_unlocks_nothing(database: Database) -> None:
    zombie = claimed(database, lease_s=-1)
    with database.transaction() as session:
        claim_split(session, zombie.document_id)

    with database.transaction() as session, pytest.raises(StaleStateError):
        document_sources.record_unlocked(session, zombie, unlocked_key="k", sha256="0" * 64)

    assert is_kept(database, zombie)


def test_the_bytes_that_are_read_are_those_without_encryption(database: Database) -> None:
    claim = claimed(database)
    with database.transaction() as session:
        document = documents.get(session, claim.document_id)
        before = document_sources.readable(document)
        document_sources.record_unlocked(session, claim, unlocked_key="k", sha256="1" * 64)
        is_there = document_sources.is_unlocked(session, claim, unlocked_key="k")
    with database.transaction() as session:
        after = document_sources.readable(documents.get(session, claim.document_id))

    assert (before.sha256, before.key) == ("0" * 64, None)
    assert (after.sha256, after.key) == ("1" * 64, "k")
    assert is_there


def test_a_row_that_is_printed_hides_its_password(database: Database) -> None:
    claim = claimed(database)

    with database.transaction() as session:
        row = session.get_one(SourcePassword, claim.document_id)

    assert PASSWORD not in repr(row)
