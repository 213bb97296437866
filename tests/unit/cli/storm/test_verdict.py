from dataclasses import replace
from uuid import UUID

import pytest

from cli.storm.verdict import (
    LOST,
    NOT_ACCEPTED,
    NOT_FINAL,
    NOT_ONCE,
    STUCK,
    TWICE,
    UNKNOWN,
    WRONG_RESULT,
    WRONG_STATE,
    Found,
    Outcome,
    Problem,
    Sent,
    comparable,
    digest_of,
    judge,
)

ID = UUID(int=1)
OTHER_ID = UUID(int=2)
EXPECTED = {
    "letters.pdf": Outcome("succeeded", digest="d1"),
    "damaged.pdf": Outcome("failed", error_code="damaged"),
}
SENT = Sent("key-1", "letters.pdf", ids=[ID], tries=1)
GOOD = Found(ID, "key-1", "succeeded", None, final_moves=1, digest="d1")


def broken(sent: Sent, *found: Found) -> list[str]:
    return [problem.what for problem in judge([sent], found, [], expected=EXPECTED).problems]


def test_a_document_that_ended_once_and_as_without_faults_holds() -> None:
    verdict = judge([SENT], [GOOD], [], expected=EXPECTED)

    assert verdict.is_held
    assert verdict.record()["verdict"] == "HELD"
    assert verdict.counts["succeeded"] == 1
    assert verdict.counts["final exactly once"] == verdict.counts["as without faults"] == 1


def test_a_document_that_must_fail_holds_when_it_fails_with_its_error() -> None:
    sent = Sent("key-1", "damaged.pdf", ids=[ID, ID], tries=3)
    row = Found(ID, "key-1", "failed", "damaged", final_moves=1)

    assert broken(sent, row) == []
    assert broken(sent, replace(row, error_code="worker_lost")) == [WRONG_STATE]


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (replace(GOOD, state="recognizing", final_moves=0, digest=None), NOT_FINAL),
        (replace(GOOD, final_moves=2), NOT_ONCE),
        (replace(GOOD, final_moves=0), NOT_ONCE),
        (replace(GOOD, state="partly_succeeded"), WRONG_STATE),
        (replace(GOOD, digest="d2"), WRONG_RESULT),
        (replace(GOOD, digest=None), WRONG_RESULT),
    ],
)
def test_whatever_else_becomes_of_it_is_a_problem(row: Found, problem: str) -> None:
    assert broken(SENT, row) == [problem]


def test_an_accepted_document_without_a_row_is_lost() -> None:
    assert broken(SENT) == [LOST]


def test_a_document_that_no_client_knows_is_a_problem() -> None:
    assert broken(SENT, GOOD, replace(GOOD, id=OTHER_ID, key=None)) == [UNKNOWN]


def test_a_key_that_stands_for_two_documents_is_a_problem() -> None:
    twice = replace(SENT, ids=[ID, OTHER_ID])
    rows = (GOOD, replace(GOOD, id=OTHER_ID))

    assert broken(twice, *rows) == [TWICE, TWICE]  # to the client, and in the database
    assert broken(SENT, *rows) == [TWICE]


def test_a_document_that_was_never_accepted_is_a_problem() -> None:
    refused = Sent("key-1", "letters.pdf", tries=4, refusal="system_full")

    verdict = judge([refused], [], [], expected=EXPECTED)

    assert [(each.document, each.what) for each in verdict.problems] == [("key-1", NOT_ACCEPTED)]
    assert verdict.counts["accepted"] == 0


def test_a_stuck_row_breaks_the_verdict() -> None:
    stuck = Problem(str(ID), STUCK, "chunk running")

    verdict = judge([SENT], [GOOD], [stuck], expected=EXPECTED)

    assert (verdict.word, verdict.counts[STUCK]) == ("BROKEN", 1)


def test_two_results_that_differ_in_time_and_id_alone_are_equal() -> None:
    def result(document_id: str, seconds: float, text: str) -> dict[str, object]:
        page = {"number": 1, "seconds": seconds, "text": text}
        return {"document_id": document_id, "usage": {"seconds": seconds}, "pages": [page]}

    first = digest_of(comparable(result("a", 1, "calm")))

    assert digest_of(comparable(result("b", 2, "calm"))) == first
    assert digest_of(comparable(result("a", 1, "storm"))) != first
