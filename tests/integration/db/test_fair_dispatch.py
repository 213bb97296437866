"""Whose rows are taken first, on a real Postgres with backlogs of thousands."""

from collections import Counter

from sqlalchemy import text

from db import outbox
from db.engine import Database, Session
from db.outbox import DueWork, Turns, Work
from db.states import Priority
from tests.support.backlog import add_batch, add_bulk
from tests.support.rows import DUE_NOW_S, add_document, add_recognizing_document


def take(
    session: Session, turns: Turns, *, room: int, work: Work = Work.SPLIT, priority: str = "bulk"
) -> list[DueWork]:
    return list(
        outbox.take_due(
            session, work, Priority(priority), turns=turns, room=room, backoff_s=3_600
        ).due
    )


def lanes(due: list[DueWork]) -> Counter[str]:
    return Counter(work.lane.name for work in due)


def test_a_tenant_with_one_document_is_served_beside_one_with_ten_thousand(
    database: Database,
) -> None:
    with database.transaction() as session:
        add_bulk(session, tenant="large", count=10_000, age_s=3_600)
        small = add_bulk(session, tenant="small", count=1, age_s=1)

        due = take(session, Turns(), room=20)

    assert lanes(due)[small] == 1
    assert len(due) == 20


def test_a_tenant_gets_no_more_for_having_many_batches(database: Database) -> None:
    with database.transaction() as session:
        for _ in range(30):
            add_bulk(session, tenant="many", count=20)
        add_bulk(session, tenant="one", count=200)

        due = take(session, Turns(), room=100)

    assert Counter(work.lane.tenant for work in due) == {"many": 50, "one": 50}


def test_a_batch_of_five_beside_one_of_five_thousand_is_through_early(database: Database) -> None:
    with database.transaction() as session:
        large = add_bulk(session, tenant="archive", count=5_000, age_s=3_600)
        small = add_bulk(session, tenant="archive", count=5, age_s=1)

        due = take(session, Turns(), room=40)

    assert lanes(due) == {large: 35, small: 5}
    assert small in {work.lane.name for work in due[:2]}


def test_the_oldest_of_a_lane_comes_first(database: Database) -> None:
    with database.transaction() as session:
        ids = [
            add_document(session, priority="bulk", dispatch_after_s=-age_s)
            for age_s in (5, 300, 20, 70)
        ]

        due = take(session, Turns(), room=4)

    assert [work.id for work in due] == [ids[1], ids[3], ids[2], ids[0]]


def test_no_lane_starves_where_there_is_room_for_one(database: Database) -> None:
    with database.transaction() as session:
        expected = {
            add_bulk(session, tenant=tenant, count=50, age_s=age_s)
            for tenant in ("a", "b", "c")
            for age_s in (3_600, 60, 1)
        }
    turns = Turns()
    served: set[str] = set()

    for _ in range(len(expected)):
        with database.transaction() as session:
            served.update(lanes(take(session, turns, room=1)))

    assert served == expected


def test_rows_that_a_sweep_holds_which_hangs_keep_nobody_from_the_others(
    database: Database,
) -> None:
    with database.transaction() as session:
        add_bulk(session, tenant="archive", count=50)

    with database.transaction() as hanging:
        held = take(hanging, Turns(), room=10)
        with database.transaction() as session:
            due = take(session, Turns(), room=10)

    assert len({work.id for work in [*held, *due]}) == 20


def test_a_long_lane_gets_all_the_room_that_short_ones_leave(database: Database) -> None:
    with database.transaction() as session:
        for _ in range(5):
            add_bulk(session, tenant="archive", count=1)
        add_bulk(session, tenant="archive", count=500)

        taken = outbox.take_due(
            session, Work.SPLIT, Priority.BULK, turns=Turns(), room=200, backoff_s=60
        )

    assert len(taken.due) == 200
    assert taken.left > 0


def test_bulk_documents_wait_with_their_split_while_chunks_of_their_lane_are_due(
    database: Database,
) -> None:
    with database.transaction() as session:
        busy = add_batch(session, tenant="archive")
        idle = add_batch(session, tenant="archive")
        add_recognizing_document(session, priority="bulk", batch_id=busy, chord_grace_s=None)
        for batch_id in (busy, idle):
            add_document(session, priority="bulk", batch_id=batch_id, dispatch_after_s=DUE_NOW_S)

        waits = lanes(take(session, Turns(), room=10))
        take(session, Turns(), room=10, work=Work.RECOGNIZE)
        goes = lanes(take(session, Turns(), room=10))

    assert (waits, goes) == ({str(idle): 1}, {str(busy): 1})


def test_an_interactive_document_is_split_at_once_even_so(database: Database) -> None:
    with database.transaction() as session:
        add_recognizing_document(session, chord_grace_s=None)
        document_id = add_document(session, dispatch_after_s=DUE_NOW_S)

        due = take(session, Turns(), room=10, priority="interactive")

    assert [work.id for work in due] == [document_id]


def test_what_has_used_up_its_attempts_is_found_behind_thousands(database: Database) -> None:
    with database.transaction() as session:
        add_bulk(session, tenant="archive", count=2_000)
        document_id = add_document(session, priority="bulk", dispatch_after_s=DUE_NOW_S)
        session.execute(
            text("UPDATE documents SET attempt = 5, excused = 1 WHERE id = :id"),
            {"id": document_id},
        )

        spent = outbox.take_spent(session, Work.SPLIT, max_attempts=4, limit=10, backoff_s=60)

    assert [(work.id, work.attempts) for work in spent] == [(document_id, 4)]
