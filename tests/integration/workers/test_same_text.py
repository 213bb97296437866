"""The same document gives the same result, however its pages and crops are grouped."""

import dataclasses
from typing import Any

import pytest

from cli.samples import Sample
from tests.support.models import require_bundle
from tests.support.pipeline import Pipeline
from workers.ocr.engine import EngineOptions, OcrEngine


@pytest.fixture(scope="module")
def documents(samples: dict[str, Sample]) -> dict[str, bytes]:
    names = ("scanned-letters.pdf", "chinese-inventory.pdf", "register.tiff")
    return {name: samples[name].path.read_bytes() for name in names}


def pages_of(pipeline: Pipeline, documents: dict[str, bytes]) -> list[dict[str, Any]]:
    """Read all documents and return their pages, without how long each took."""
    pages = []
    for body in documents.values():
        document_id = pipeline.accept(body)
        pipeline.finish(document_id)
        pages += pipeline.result(document_id)["pages"]
    for page in pages:
        del page["seconds"]
    return pages


@pytest.fixture
def reference(pipeline: Pipeline, documents: dict[str, bytes]) -> list[dict[str, Any]]:
    pipeline.engine = OcrEngine(require_bundle(), EngineOptions(rec_chunk_size=256))
    return pages_of(dataclasses.replace(pipeline, chunk_pages=16), documents)


@pytest.mark.timeout(600)
def test_pages_are_the_same_for_any_chunk_and_minibatch(
    pipeline: Pipeline, documents: dict[str, bytes], reference: list[dict[str, Any]]
) -> None:
    pipeline.engine = OcrEngine(require_bundle(), EngineOptions(rec_chunk_size=1))

    pages = pages_of(dataclasses.replace(pipeline, chunk_pages=1), documents)

    assert pages == reference


def test_the_reference_has_text_on_every_page(reference: list[dict[str, Any]]) -> None:
    assert all(page["lines"] for page in reference)
