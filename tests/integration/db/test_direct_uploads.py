"""Direct uploads: who may have one when, and what is left to whom."""

from collections.abc import Sequence
from uuid import UUID

import pytest
from sqlalchemy import select, text, update

from db import direct_uploads
from db.direct_uploads import EndedUpload, TooManyUploadsError, UploadIsCheckedError
from db.engine import Database
from db.errors import DuplicateRowError, RowNotFoundError
from db.ids import new_id
from db.intake_models import DirectUpload
from tests.support.rows import TENANT


def announce(database: Database, *, tenant: str = TENANT, key: str | None = None) -> UUID:
    upload = DirectUpload(
        id=new_id(),
        tenant=tenant,
        filename="a.pdf",
        size_bytes=10,
        part_bytes=10,
        sha256=None,
        fields={},
        idempotency_key=key,
        parts_id="parts",
    )
    with database.transaction() as session:
        direct_uploads.insert(session, upload, expires_s=3_600, most_open=3)
    return upload.id


def is_there(database: Database, upload_id: UUID) -> bool:
    with database.transaction() as session:
        try:
            direct_uploads.get(session, upload_id, tenant=TENANT)
        except RowNotFoundError:
            return False
    return True


def begin_check(database: Database, upload_id: UUID, *, lease_s: float = 60) -> bool:
    with database.transaction() as session:
        return direct_uploads.begin_check(session, upload_id, lease_s=lease_s)


def end(database: Database, upload_id: UUID) -> bool:
    with database.transaction() as session:
        return direct_uploads.end(session, upload_id)


def take(database: Database) -> Sequence[EndedUpload]:
    with database.transaction() as session:
        return direct_uploads.take_ended(session, limit=10, backoff_s=60)


def let_pass(database: Database, seconds: float) -> None:
    """Let time pass for all uploads, but for whoever holds one."""
    moved = text(f"interval '{seconds} s'")
    with database.transaction() as session:
        session.execute(
            update(DirectUpload).values(
                expires_at=DirectUpload.expires_at - moved,
                clear_after=DirectUpload.clear_after - moved,
            )
        )


def rows_in(database: Database) -> list[UUID]:
    with database.transaction() as session:
        return list(session.scalars(select(DirectUpload.id)))


def test_an_upload_is_seen_until_it_expires(database: Database) -> None:
    upload_id = announce(database)
    before = is_there(database, upload_id)

    let_pass(database, 3_601)

    assert (before, is_there(database, upload_id)) == (True, False)


def test_an_upload_is_seen_by_its_tenant_alone(database: Database) -> None:
    upload_id = announce(database, tenant="stranger")

    assert not is_there(database, upload_id)


def test_a_tenant_has_so_many_open_and_no_more(database: Database) -> None:
    for _ in range(3):
        announce(database)
    announce(database, tenant="stranger")

    with pytest.raises(TooManyUploadsError):
        announce(database)


def test_ended_uploads_make_room(database: Database) -> None:
    uploads = [announce(database) for _ in range(3)]
    with database.transaction() as session:
        direct_uploads.abort(session, uploads[0], tenant=TENANT)

    announce(database)


def test_one_checks_and_no_other(database: Database) -> None:
    upload_id = announce(database)

    assert [begin_check(database, upload_id) for _ in range(2)] == [True, False]


def test_who_has_let_go_or_died_leaves_it_to_the_next(database: Database) -> None:
    upload_id = announce(database)
    begin_check(database, upload_id)
    with database.transaction() as session:
        direct_uploads.end_check(session, upload_id)

    after_letting_go = begin_check(database, upload_id, lease_s=0)

    assert (after_letting_go, begin_check(database, upload_id)) == (True, True)


def test_whoever_holds_it_ends_it_once(database: Database) -> None:
    upload_id = announce(database)
    begin_check(database, upload_id)

    assert [end(database, upload_id) for _ in range(2)] == [True, False]
    assert rows_in(database) == []


def test_nobody_ends_what_he_does_not_hold(database: Database) -> None:
    upload_id = announce(database)
    unheld = end(database, upload_id)
    begin_check(database, upload_id, lease_s=0)

    assert (unheld, end(database, upload_id)) == (False, False)
    assert rows_in(database) == [upload_id]


def test_what_is_held_outlives_its_time(database: Database) -> None:
    upload_id = announce(database)
    begin_check(database, upload_id)
    let_pass(database, 3_601)

    assert take(database) == []
    assert is_there(database, upload_id)
    with database.transaction() as session:
        assert direct_uploads.renew_check(session, upload_id, lease_s=60)
    assert end(database, upload_id)


def test_what_has_expired_is_held_by_nobody_any_more(database: Database) -> None:
    upload_id = announce(database)
    begin_check(database, upload_id, lease_s=0)
    let_pass(database, 3_601)

    with database.transaction() as session:
        is_renewed = direct_uploads.renew_check(session, upload_id, lease_s=60)

    assert (is_renewed, begin_check(database, upload_id), end(database, upload_id)) == (
        False,
        False,
        False,
    )
    assert [each.upload_id for each in take(database)] == [upload_id]


def test_an_open_upload_is_left_alone(database: Database) -> None:
    announce(database)

    assert take(database) == []


def test_what_is_removed_is_looked_at_once_more_when_no_part_can_come_any_more(
    database: Database,
) -> None:
    upload_id = announce(database)
    let_pass(database, 3_601)
    (first,) = take(database)
    with database.transaction() as session:
        direct_uploads.close(session, first)
    at_once = take(database)
    let_pass(database, 3_601)
    (last,) = take(database)
    with database.transaction() as session:
        direct_uploads.close(session, last)

    assert (first, last) == (
        EndedUpload(upload_id, "parts", is_last=False),
        EndedUpload(upload_id, "parts", is_last=True),
    )
    assert at_once == []
    assert rows_in(database) == []


def test_what_could_not_be_removed_is_looked_at_again_and_holds_up_nobody(
    database: Database,
) -> None:
    stubborn = announce(database)
    let_pass(database, 3_601)
    first = take(database)
    other = announce(database)
    let_pass(database, 3_601)

    assert [each.upload_id for each in first] == [stubborn]
    assert {each.upload_id for each in take(database)} == {stubborn, other}


def test_an_aborted_upload_is_gone_at_once_and_its_key_free(database: Database) -> None:
    upload_id = announce(database, key="once")
    with pytest.raises(DuplicateRowError):
        announce(database, key="once")

    with database.transaction() as session:
        direct_uploads.abort(session, upload_id, tenant=TENANT)

    assert not is_there(database, upload_id)
    assert [each.upload_id for each in take(database)] == [upload_id]
    announce(database, key="once")


def test_what_is_checked_is_not_aborted(database: Database) -> None:
    upload_id = announce(database)
    begin_check(database, upload_id)

    with pytest.raises(UploadIsCheckedError), database.transaction() as session:
        direct_uploads.abort(session, upload_id, tenant=TENANT)


def test_a_failed_upload_says_why_until_it_is_aborted(database: Database) -> None:
    upload_id = announce(database, key="once")
    begin_check(database, upload_id)
    with database.transaction() as session:
        direct_uploads.fail(session, upload_id, code="upload_mismatch")
    with database.transaction() as session:
        failed = direct_uploads.get(session, upload_id, tenant=TENANT)

    with database.transaction() as session:
        direct_uploads.abort(session, upload_id, tenant=TENANT)

    assert (failed.error_code, failed.idempotency_key) == ("upload_mismatch", None)
    assert not is_there(database, upload_id)


def test_the_name_of_its_parts_is_written_once(database: Database) -> None:
    upload_id = announce(database)
    with database.transaction() as session:
        session.execute(update(DirectUpload).values(parts_id=None))

    noted = []
    for parts_id in ("first", "second"):
        with database.transaction() as session:
            noted.append(direct_uploads.note_parts(session, upload_id, parts_id))

    with database.transaction() as session:
        upload = direct_uploads.get(session, upload_id, tenant=TENANT)
    assert (noted, upload.parts_id) == ([True, False], "first")
