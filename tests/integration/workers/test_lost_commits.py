"""Every step of a document, when the connection is lost in its COMMIT."""

from collections.abc import Callable, Iterator
from uuid import UUID

import pytest
import redis

from db import chunks, documents
from db.documents import DocumentClaim
from db.engine import Database, Session
from db.models import Chunk, Document
from db.states import ChunkState, DocumentState
from tests.support.commit_proxy import CommitProxy, commit_proxy
from tests.support.engines import FailingEngine, NumberingEngine
from tests.support.pipeline import Pipeline, tiff_of
from workers import claimed_work
from workers.ocr.errors import InferenceError

# What stands in a statement of each step's transaction and of no other one's.
STEPS = {
    "claim of the split": "splitting_at=",
    "split": "INSERT INTO chunks",
    "claim of a chunk": "attempt=(chunks.attempt",
    "publication": "UPDATE pages",
    "claim of the assembly": "assembling_at=",
    "end of the document": "result_size_bytes=",
}


@pytest.fixture
def line(database_url: str) -> Iterator[CommitProxy]:
    with commit_proxy(database_url) as line:
        yield line


@pytest.fixture
def pipeline(pipeline: Pipeline, line: CommitProxy) -> Iterator[Pipeline]:
    direct = pipeline.database
    pipeline.database = Database(line.url)
    yield pipeline
    pipeline.database.dispose()
    pipeline.database = direct


@pytest.mark.parametrize("takes_effect", [False, True])
@pytest.mark.parametrize("step", STEPS)
def test_a_step_whose_commit_is_lost_is_done_once_and_costs_no_attempt(
    pipeline: Pipeline, line: CommitProxy, redis_url: str, step: str, *, takes_effect: bool
) -> None:
    document_id = pipeline.accept(tiff_of(3))
    line.lose_commit(of=STEPS[step], takes_effect=takes_effect)

    state = pipeline.finish(document_id)

    assert (state, line.lost) == (DocumentState.SUCCEEDED, 1)
    assert pipeline.result(document_id)["full_text"] == "page 1\fpage 2\fpage 3"
    with pipeline.database.transaction() as session:
        rows = chunks.list_of_document(session, document_id)
        assert [(row.state, row.attempt) for row in rows] == [(ChunkState.SUCCEEDED, 1)] * 2
        assert documents.get(session, document_id).attempt == 2
    with redis.Redis.from_url(redis_url) as client:
        assert client.llen("pagefleet:recognize") == 2  # the chord was sent, once


@pytest.mark.parametrize("takes_effect", [False, True])
def test_a_chunk_is_put_back_though_its_commit_is_lost(
    pipeline: Pipeline, line: CommitProxy, *, takes_effect: bool
) -> None:
    document_id = pipeline.accept(tiff_of(1))
    pipeline.split(document_id)
    (chunk_id,) = pipeline.chunk_ids(document_id)
    pipeline.engine = FailingEngine(InferenceError("x"))
    line.lose_commit(of="excused=", takes_effect=takes_effect)

    with pytest.raises(InferenceError):
        pipeline.recognize(chunk_id)

    with pipeline.database.transaction() as session:
        row = session.get_one(Chunk, chunk_id)
    assert (row.state, row.attempt, row.excused) == (ChunkState.QUEUED, 1, 0)
    assert line.lost == 1


@pytest.mark.parametrize("takes_effect", [False, True])
def test_the_last_chunk_calls_the_assembly_though_its_commit_is_lost(
    pipeline: Pipeline, line: CommitProxy, redis_url: str, *, takes_effect: bool
) -> None:
    document_id = pipeline.accept(tiff_of(1))
    pipeline.split(document_id)
    (chunk_id,) = pipeline.chunk_ids(document_id)
    pipeline.engine = FailingEngine(InferenceError("x"))  # which kills the chord
    with pytest.raises(InferenceError):
        pipeline.recognize(chunk_id)
    pipeline.engine = NumberingEngine()
    line.lose_commit(of="UPDATE pages", takes_effect=takes_effect)

    outcome = pipeline.recognize(chunk_id)

    assert outcome.pages_ok == 1
    with redis.Redis.from_url(redis_url) as client:
        assert client.llen("pagefleet:assemble") == 1


def take_split(
    pipeline: Pipeline, document_id: UUID, *, read: Callable[[Session, DocumentClaim], None]
) -> None:
    claimed_work.take(
        lambda session: documents.claim_split(
            session, document_id, worker="test:1", lease_s=60, max_attempts=3
        ),
        documents,
        read=read,
        transaction=pipeline.database.transaction,
        rules=pipeline.rules,
    )


def test_a_claim_that_a_signal_to_end_came_into_is_given_back(pipeline: Pipeline) -> None:
    document_id = pipeline.accept(tiff_of(1))

    def stop_after_claim(session: Session, _claim: DocumentClaim) -> None:
        session.commit()  # took effect, and then the signal
        raise SystemExit

    with pytest.raises(SystemExit):
        take_split(pipeline, document_id, read=stop_after_claim)

    with pipeline.database.transaction() as session:
        row = session.get_one(Document, document_id)
    assert (row.state, row.attempt, row.excused) == (DocumentState.QUEUED, 1, 1)


def test_a_signal_gives_back_nobody_elses_claim(pipeline: Pipeline) -> None:
    document_id = pipeline.accept(tiff_of(1))

    def lose_to_another(session: Session, _claim: DocumentClaim) -> None:
        session.rollback()  # did not take effect, and somebody else claimed
        with pipeline.database.transaction() as other:
            documents.claim_split(other, document_id, worker="other:1", lease_s=60, max_attempts=3)
        raise SystemExit

    with pytest.raises(SystemExit):
        take_split(pipeline, document_id, read=lose_to_another)

    with pipeline.database.transaction() as session:
        row = session.get_one(Document, document_id)
    assert (row.state, row.worker) == (DocumentState.SPLITTING, "other:1")
