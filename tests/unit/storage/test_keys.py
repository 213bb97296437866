from uuid import UUID

import pytest

from storage import keys

DOCUMENT = UUID("0193f0a0-0000-7000-8000-000000000001")
CHUNK = UUID("0193f0a0-0000-7000-8000-000000000002")


def test_every_key_of_a_document_lies_under_its_prefix() -> None:
    prefix = keys.document_prefix(DOCUMENT)

    made = [
        keys.source_key(DOCUMENT),
        keys.chunk_pages_key(DOCUMENT, CHUNK, 1),
        keys.unlocked_source_key(DOCUMENT, 1),
        keys.cached_pages_key(DOCUMENT, 1, 0),
        keys.result_key(DOCUMENT, 1),
        keys.result_text_key(DOCUMENT, 1),
    ]

    assert prefix == "documents/0193f0a0-0000-7000-8000-000000000001/"
    assert all(key.startswith(prefix) for key in made)
    assert len(set(made)) == len(made)


def test_each_attempt_at_a_chunk_writes_beside_the_others() -> None:
    assert keys.chunk_pages_key(DOCUMENT, CHUNK, 3) == (
        "documents/0193f0a0-0000-7000-8000-000000000001/"
        "chunks/0193f0a0-0000-7000-8000-000000000002/3/pages.jsonl.gz"
    )


def test_each_generation_has_a_result_of_its_own() -> None:
    assert keys.result_key(DOCUMENT, 2) == (
        "documents/0193f0a0-0000-7000-8000-000000000001/2/result.json"
    )


@pytest.mark.parametrize("attempt", [0, -1])
def test_attempts_count_from_one(attempt: int) -> None:
    with pytest.raises(ValueError, match="from 1"):
        keys.chunk_pages_key(DOCUMENT, CHUNK, attempt)


@pytest.mark.parametrize("generation", [0, -1])
def test_generations_count_from_one(generation: int) -> None:
    with pytest.raises(ValueError, match="from 1"):
        keys.result_key(DOCUMENT, generation)


def test_the_text_of_a_result_lies_beside_it() -> None:
    assert keys.text_key_of(keys.result_key(DOCUMENT, 3)) == keys.result_text_key(DOCUMENT, 3)
