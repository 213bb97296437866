"""Exports against whoever deletes their document at the same moment."""

import threading
from uuid import UUID

import pytest
from sqlalchemy import text

from db import deleting, documents, exports
from db.engine import Database, Session
from db.exports import ExportClaim, Requested
from db.states import DocumentState
from tests.support.locks import wait_for_somebody_who_waits
from tests.support.rows import NOT_DUE_S, TENANT, add_document


@pytest.fixture
def document_id(database: Database) -> UUID:
    """A document that ended long ago."""
    with database.transaction() as session:
        added = add_document(session, state=DocumentState.SUCCEEDED)
        session.execute(text("UPDATE documents SET finished_at = now() - interval '1 day'"))
    return added


@pytest.fixture
def export_id(database: Database, document_id: UUID) -> UUID:
    with database.transaction() as session:
        requested = exports.request(
            session,
            documents.get(session, document_id),
            generation=1,
            name="csv",
            pages="",
            dispatch_after_s=NOT_DUE_S,
        )
    assert isinstance(requested, Requested)
    return requested.export.id


def claim(session: Session, export_id: UUID) -> ExportClaim | None:
    return exports.claim(session, export_id, worker="a", lease_s=60, max_attempts=4)


def mark(session: Session, document_id: UUID) -> None:
    deleting.mark(session, document_id, tenant=TENANT, writers_s=60)


def test_whoever_deletes_a_document_waits_for_an_export_that_begins(
    database: Database, document_id: UUID, export_id: UUID
) -> None:
    def delete() -> None:
        with database.transaction() as session:
            mark(session, document_id)

    deletes = threading.Thread(target=delete)
    with database.transaction() as worker:
        assert claim(worker, export_id) is not None
        deletes.start()
        wait_for_somebody_who_waits(database)
    deletes.join()

    with database.transaction() as session:
        (deletion,) = deleting.take(session, limit=1, backoff_s=60)
    assert not deletion.is_last


def test_an_export_of_a_document_that_is_being_deleted_does_not_begin(
    database: Database, document_id: UUID, export_id: UUID
) -> None:
    claims: list[ExportClaim | None] = []

    def begin() -> None:
        with database.transaction() as session:
            claims.append(claim(session, export_id))

    begins = threading.Thread(target=begin)
    with database.transaction() as session:
        mark(session, document_id)
        begins.start()
        wait_for_somebody_who_waits(database)
    begins.join()

    assert claims == [None]
