"""Where things lie: pure functions from ids to keys. No name of a user ever becomes a key."""

from typing import Final
from uuid import UUID

ROOT = "documents/"
PAGES_MEDIA_TYPE: Final = "application/gzip"
"""Of the objects that hold page results: those of a chunk, and those that were copied."""


def document_prefix(document_id: UUID) -> str:
    """Return the prefix under which all objects of a document lie."""
    return f"{ROOT}{document_id}/"


def source_key(document_id: UUID) -> str:
    """Return the key of the bytes as they came."""
    return f"{document_prefix(document_id)}source"


def unlocked_source_key(document_id: UUID, attempt: int) -> str:
    """Return the key of the bytes without their encryption, made by one attempt at the split."""
    return f"{document_prefix(document_id)}unlocked/{attempt}"


def chunk_pages_key(document_id: UUID, chunk_id: UUID, attempt: int) -> str:
    """Return the key of the page results of one attempt: a late attempt writes beside, not over.

    Raises:
        ValueError: attempts count from 1; a mistake of the caller.
    """
    if attempt < 1:
        raise ValueError(f"attempts count from 1, got {attempt}")
    return f"{document_prefix(document_id)}chunks/{chunk_id}/{attempt}/pages.jsonl.gz"


def cached_pages_key(document_id: UUID, attempt: int, number: int) -> str:
    """Return the key of page results that were copied from an earlier document.

    Args:
        document_id: whose copy it is.
        attempt: of its split: a late attempt writes beside, not over.
        number: of the object among those of the attempt.
    """
    return f"{document_prefix(document_id)}cached/{attempt}/{number}.jsonl.gz"


def result_key(document_id: UUID, generation: int) -> str:
    """Return the key of the assembled result."""
    return f"{_generation_prefix(document_id, generation)}result.json"


def result_text_key(document_id: UUID, generation: int) -> str:
    """Return the key of the plain text of the assembled result."""
    return f"{_generation_prefix(document_id, generation)}result.txt"


def text_key_of(key_of_result: str) -> str:
    """Return the key of the plain text that was stored with a result, whichever generation's."""
    return f"{key_of_result.removesuffix('.json')}.txt"


def generation_of(key_of_result: str) -> int:
    """Return the generation whose result has this key."""
    return int(key_of_result.split("/")[-2])


def export_key(document_id: UUID, generation: int, *, name: str, pages: str, attempt: int) -> str:
    """Return the key of another form of a result: a late attempt writes beside, not over.

    Args:
        document_id: of the document.
        generation: of the result.
        name: of the format.
        pages: the choice of pages, such as ``3-9``; empty for all.
        attempt: of its making, counted from 1.

    Raises:
        ValueError: generation or attempt is below 1; a mistake of the caller.
    """
    if attempt < 1:
        raise ValueError(f"attempts count from 1, got {attempt}")
    prefix = _generation_prefix(document_id, generation)
    return f"{prefix}exports/{name}/{pages or 'all'}/{attempt}"


def page_image_key(document_id: UUID, generation: int, page_index: int) -> str:
    """Return the key of the image of a page, as it was read in that generation."""
    return f"{_generation_prefix(document_id, generation)}images/{page_index}.jpg"


def page_image_error_key(document_id: UUID, generation: int, page_index: int) -> str:
    """Return the key of why a page cannot be drawn.

    It holds the error code and, behind a space, until when that counts, in seconds since 1970.
    """
    return f"{_generation_prefix(document_id, generation)}images/{page_index}.error"


def _generation_prefix(document_id: UUID, generation: int) -> str:
    if generation < 1:
        raise ValueError(f"generations count from 1, got {generation}")
    return f"{document_prefix(document_id)}{generation}/"
