"""Processes die at exact points of a document's way, and the document ends as if none had.

After every fault the stage requires what has to hold: the document has the result of a run without
one, every row came to its end once, none is open or past a deadline, and no message is left.
"""

from uuid import uuid4

import pytest

from tests.support.fault_stage import SWEEPS, FaultStage
from tests.support.fleet import wait_for

API = ["api_after_put", "api_after_commit", "api_after_publish"]
SPLIT = [
    "split_before_rows",
    "split_before_commit",
    "split_after_rows",
    "split_in_chord",
]
CHUNK = [
    "chunk_after_claim",
    "chunk_in_inference",
    "chunk_after_put",
    "chunk_before_commit",
    "chunk_after_commit",
    "chunk_before_count",
    "chunk_after_chord_claim",
]
ASSEMBLY = [
    "assembly_before_put",
    "assembly_before_move",
    "assembly_before_commit",
    "assembly_after_commit",
]
# A pool child does not acknowledge; its worker does.
BEFORE_ACK = ["split_before_ack", "chunk_before_ack", "assembly_before_ack"]
KILLS = [
    *((point, "child") for point in SPLIT + CHUNK + ASSEMBLY),
    *((point, "group") for point in CHUNK + BEFORE_ACK),
]
SWEEP = ["sweep_before_publish", "sweep_after_publish"]

# Longer than any lease, grace and back-off of the stage that a first recovery waits for.
LONG_ENOUGH_S = 8.0

pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize("point", API)
def test_an_api_that_dies_makes_one_document_of_an_upload_that_is_sent_again(
    stage: FaultStage, point: str
) -> None:
    stage.arm(point, "child")

    document_id = stage.submit()
    stage.reached(point)

    stage.check(document_id)
    assert stage.value("SELECT count(*) FROM documents") == 1


@pytest.mark.parametrize(("point", "action"), KILLS)
def test_a_worker_that_dies_costs_no_page_and_does_none_twice(
    stage: FaultStage, point: str, action: str
) -> None:
    stage.arm(point, action)

    document_id = stage.submit()
    stage.reached(point)

    stage.check(document_id)


@pytest.mark.parametrize("point", ["chunk_before_commit", "chunk_after_commit"])
def test_a_worker_that_is_told_to_end_at_a_commit_costs_no_page(
    stage: FaultStage, point: str
) -> None:
    stage.arm(point, "hold")
    document_id = stage.submit()
    worker = stage.name_of(stage.reached(point))

    stage.fleet.terminate(worker)
    stage.forget_held(point)

    stage.check(document_id)


@pytest.mark.parametrize("point", SWEEP)
def test_one_of_two_sweeps_that_dies_loses_no_document(stage: FaultStage, point: str) -> None:
    stage.arm(point, "child")

    # The API leaves bulk to the sweeps: nobody else sends any of these.
    document_ids = [stage.submit(priority="bulk") for _ in range(3)]
    stage.reached(point)

    stage.check(*document_ids)


def test_of_the_last_two_chunks_that_commit_together_one_calls_for_the_assembly(
    stage: FaultStage,
) -> None:
    stage.stop_sweeps()
    stage.arm("chunk_after_put", "hold", "hold")
    stage.arm("chunk_before_commit", "hold")
    stage.arm("assembly_before_claim", "hold")
    document_id = stage.submit()
    # Both are read before one opens its transaction, which Postgres does not leave idle for long.
    for _ in range(2):
        stage.reached("chunk_after_put")
    for _ in range(2):
        stage.release("chunk_after_put")
    stage.reached("chunk_before_commit")

    wait_for("the other one", stage.is_waiting_for_a_document, timeout_s=30)
    stage.release("chunk_before_commit")
    stage.reached("assembly_before_claim")
    calls = stage.value("SELECT count(*) FROM documents WHERE dispatch_after IS NOT NULL")
    stage.release("assembly_before_claim")

    assert calls == 1
    stage.check(document_id)


def test_an_assembly_that_runs_three_times_at_once_ends_the_document_once(
    stage: FaultStage,
) -> None:
    stage.arm("assembly_before_claim", "hold", "hold", "hold")
    document_id = stage.submit()
    stage.reached("assembly_before_claim")
    for _ in range(2):
        stage.send("documents.assemble", str(document_id), 1, queue="assemble")
        stage.reached("assembly_before_claim")

    for _ in range(3):
        stage.release("assembly_before_claim")

    stage.check(document_id)


def test_an_assembly_that_comes_before_the_last_chunk_changes_nothing(stage: FaultStage) -> None:
    stage.arm("chunk_after_put", "hold")
    document_id = stage.submit()
    stage.reached("chunk_after_put")
    stage.arm("assembly_before_claim", "hold")

    stage.send("documents.assemble", str(document_id), 1, queue="assemble")
    stage.reached("assembly_before_claim")
    stage.release("assembly_before_claim")
    stage.wait_until_idle_but(1)
    state = stage.state(document_id)
    stage.release("chunk_after_put")

    assert state == "recognizing"
    stage.check(document_id)


def test_a_task_name_that_no_worker_knows_yet_costs_no_document(stage: FaultStage) -> None:
    stage.arm("api_after_commit", "child")
    stage.stop_sweeps()
    document_id = stage.submit()
    stage.reached("api_after_commit")

    stage.send("documents.split_anew", str(document_id), queue="split")
    wait_for(
        "the end of the message",
        lambda: "documents.split_anew" in stage.log_of_clerks(),
        timeout_s=30,
    )
    state = stage.state(document_id)
    stage.start(*SWEEPS)

    assert state == "queued"
    stage.check(document_id)


def test_without_a_sweep_a_document_stays_open(stage: FaultStage) -> None:
    """Shows that these faults do harm, and that the stage would see it."""
    stage.stop_sweeps()
    stage.arm("chunk_before_count", "group")

    document_id = stage.submit()
    stage.reached("chunk_before_count")
    with pytest.raises(AssertionError, match="in vain"):
        stage.wait_until_final(document_id, timeout_s=LONG_ENOUGH_S)

    stage.start(*SWEEPS)
    stage.check(document_id)


def test_what_an_earlier_test_left_with_a_worker_comes_by_no_armed_point(
    stage: FaultStage,
) -> None:
    stage.arm("chunk_after_claim", "group")
    stage.submit()
    stage.reached("chunk_after_claim")
    wait_for("the end of a reader", stage.is_a_worker_dead, timeout_s=30)
    stage.settle()
    # It listens before its child has loaded the models, and keeps what it takes for the child.
    stage.wait_until_workers_are_idle()
    for _ in range(6):
        stage.send("pages.recognize_chunk", str(uuid4()), queue="recognize")
    stage.wait_until_taken()

    stage.settle()
    stage.arm("chunk_after_claim", "memory")
    stage.wait_until_workers_are_idle()

    assert not stage.was_reached("chunk_after_claim")
