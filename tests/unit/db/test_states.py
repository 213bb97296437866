import pytest
from hypothesis import given
from hypothesis import strategies as st

from db.states import (
    CHUNK_MOVES,
    DOCUMENT_MOVES,
    FINAL_DOCUMENT_STATES,
    OPEN_CHUNK_STATES,
    ChunkState,
    DocumentState,
    require_document_move,
)


def test_every_document_state_has_its_moves_listed() -> None:
    assert set(DOCUMENT_MOVES) == set(DocumentState)


def test_every_chunk_state_has_its_moves_listed() -> None:
    assert set(CHUNK_MOVES) == set(ChunkState)


def test_final_document_states_are_the_four_of_the_contract() -> None:
    assert {
        DocumentState.SUCCEEDED,
        DocumentState.PARTLY_SUCCEEDED,
        DocumentState.FAILED,
        DocumentState.CANCELLED,
    } == FINAL_DOCUMENT_STATES


def test_a_chunk_is_open_while_it_waits_or_runs() -> None:
    assert {ChunkState.QUEUED, ChunkState.RUNNING} == OPEN_CHUNK_STATES


@given(source=st.sampled_from(sorted(FINAL_DOCUMENT_STATES)), target=st.sampled_from(DocumentState))
def test_a_final_document_starts_over_or_goes_and_does_nothing_else(
    source: DocumentState, target: DocumentState
) -> None:
    if target in {DocumentState.QUEUED, DocumentState.RECOGNIZING, DocumentState.DELETING}:
        require_document_move(source, target)
    else:
        with pytest.raises(ValueError, match="is not a move"):
            require_document_move(source, target)


@given(target=st.sampled_from(DocumentState))
def test_a_document_that_is_being_deleted_does_not_come_back(target: DocumentState) -> None:
    with pytest.raises(ValueError, match="is not a move"):
        require_document_move(DocumentState.DELETING, target)


@given(source=st.sampled_from(DocumentState))
def test_every_other_document_can_be_deleted(source: DocumentState) -> None:
    if source is not DocumentState.DELETING:
        require_document_move(source, DocumentState.DELETING)


def test_a_queued_document_may_be_split() -> None:
    require_document_move(DocumentState.QUEUED, DocumentState.SPLITTING)


@given(state=st.sampled_from(DocumentState))
def test_every_document_state_can_reach_an_end(state: DocumentState) -> None:
    reached = {state}
    for _ in DocumentState:
        reached |= {target for source in reached for target in DOCUMENT_MOVES[source]}

    assert reached & {*FINAL_DOCUMENT_STATES, DocumentState.DELETING}
