"""Encrypted files and their passwords: read once, kept by nobody."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pymupdf
import pytest
import structlog

from db import content_cache, document_sources
from db.states import DocumentState
from storage import keys
from storage.errors import StorageUnavailableError
from tests.support.engines import NumberingEngine
from tests.support.pipeline import Pipeline
from tests.support.stores import RefusingObjectStore
from tests.support.text_pdfs import PROSE, encrypted, prose_page, write_lines
from workers.content_cache import ContentCache
from workers.draw_page import draw_page
from workers.ocr.errors import EncryptedDocumentError
from workers.page_renderer import RenderLimits
from workers.source_file import SourceFile
from workers.unlocked_pdf import write_unlocked

PASSWORD = "kestrel over the lamp"  # noqa: S105 - made up
PDF = "application/pdf"


def plain_file() -> pymupdf.Document:
    document, _ = prose_page()
    write_lines(document.new_page(width=595, height=842), PROSE[:2])
    return document


SECRET_FILE = encrypted(plain_file(), PASSWORD)


def password_of(pipeline: Pipeline, document_id: UUID) -> str | None:
    with pipeline.database.transaction() as session:
        return document_sources.find_password(session, document_id)


def accept(
    pipeline: Pipeline, *, password: str | None = PASSWORD, body: bytes = SECRET_FILE
) -> UUID:
    return pipeline.accept(body, media_type=PDF, mode="auto", password=password)


def keys_of(pipeline: Pipeline, document_id: UUID) -> list[str]:
    return [found.key for found in pipeline.store.list(keys.document_prefix(document_id))]


def test_a_file_that_comes_with_its_password_is_read_as_without_encryption(
    pipeline: Pipeline,
) -> None:
    document_id = accept(pipeline)
    plain_id = accept(pipeline, password=None, body=plain_file().tobytes())
    pipeline.finish(plain_id)

    state = pipeline.finish(document_id)

    result = pipeline.result(document_id)
    assert state == DocumentState.SUCCEEDED
    assert result["full_text"] == pipeline.result(plain_id)["full_text"]
    assert result["source"]["sha256"] == hashlib.sha256(SECRET_FILE).hexdigest()
    assert [page["route"] for page in result["pages"]] == ["text", "text"]


def test_the_password_is_gone_when_the_split_is_done(pipeline: Pipeline) -> None:
    document_id = accept(pipeline)
    kept = password_of(pipeline, document_id)

    pipeline.split(document_id)

    assert (kept, password_of(pipeline, document_id)) == (PASSWORD, None)
    assert pipeline.store.get(keys.source_key(document_id)) == SECRET_FILE


def test_what_the_chunks_read_opens_without_a_password(pipeline: Pipeline) -> None:
    document_id = accept(pipeline)
    pipeline.split(document_id)

    row = pipeline.document(document_id)

    assert row.unlocked_key == keys.unlocked_source_key(document_id, 1)
    unlocked = pymupdf.open(stream=pipeline.store.get(row.unlocked_key), filetype="pdf")
    assert (unlocked.needs_pass, unlocked.is_encrypted, unlocked.page_count) == (0, False, 2)


@pytest.mark.parametrize("password", [None, "wrong", PASSWORD.upper()])
def test_without_its_password_a_file_is_refused_and_nothing_stays(
    pipeline: Pipeline, password: str | None
) -> None:
    document_id = accept(pipeline, password=password)

    pipeline.split(document_id)

    row = pipeline.document(document_id)
    assert (row.state, row.error_code) == (DocumentState.FAILED, "encrypted")
    assert "with its password" in (row.error_detail or "")
    assert password_of(pipeline, document_id) is None
    assert keys_of(pipeline, document_id) == [keys.source_key(document_id)]


def test_a_password_that_is_not_needed_is_gone_too(pipeline: Pipeline) -> None:
    document_id = accept(pipeline, body=plain_file().tobytes())

    assert pipeline.finish(document_id) == DocumentState.SUCCEEDED

    assert password_of(pipeline, document_id) is None
    assert pipeline.document(document_id).unlocked_key is None


class AwayAfterUnlocking(RefusingObjectStore):
    """Fails once, when the unlocked bytes are to be fetched again."""

    def __init__(self) -> None:
        super().__init__()
        self.failures = 1

    def stream(self, key: str, **pinned: Any) -> Iterator[bytes]:
        if "/unlocked/" in key and self.failures:
            self.failures -= 1
            raise StorageUnavailableError(key)
        return super().stream(key, **pinned)


def test_an_attempt_that_fails_after_unlocking_needs_the_password_no_more(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    document_id = accept(pipeline)
    store = AwayAfterUnlocking()
    for key in keys_of(pipeline, document_id):
        store.put(key, pipeline.store.get(key), media_type=PDF)
    pipeline.store, pipeline.source_file = store, SourceFile(store, folder=tmp_path / "other")

    with pytest.raises(StorageUnavailableError):
        pipeline.split(document_id)

    assert pipeline.document(document_id).state == DocumentState.QUEUED
    assert password_of(pipeline, document_id) is None
    assert pipeline.finish(document_id) == DocumentState.SUCCEEDED
    pipeline.source_file.close()


def test_a_split_that_is_put_back_before_that_keeps_the_password(pipeline: Pipeline) -> None:
    document_id = accept(pipeline)
    assert isinstance(pipeline.store, RefusingObjectStore)
    pipeline.store.is_away = True

    with pytest.raises(StorageUnavailableError):
        pipeline.split(document_id)
    kept = password_of(pipeline, document_id)
    pipeline.store.is_away = False

    assert kept == PASSWORD
    assert pipeline.finish(document_id) == DocumentState.SUCCEEDED


def test_no_log_line_has_the_password(pipeline: Pipeline) -> None:
    with structlog.testing.capture_logs() as lines:
        pipeline.finish(accept(pipeline))
        pipeline.split(accept(pipeline, password=PASSWORD.upper()))

    told = json.dumps(lines, default=str)
    assert "source unlocked" in told
    assert PASSWORD.upper() not in told.upper()


def test_the_image_of_a_page_of_an_encrypted_file_is_drawn(pipeline: Pipeline) -> None:
    document_id = accept(pipeline)
    pipeline.finish(document_id)

    assert draw_page(
        document_id,
        1,
        transaction=pipeline.database.transaction,
        store=pipeline.store,
        source_file=pipeline.source_file,
        renderer=pipeline.renderer,
    )


def test_an_encrypted_file_serves_nobody_who_has_not_its_password(pipeline: Pipeline) -> None:
    pipeline.cache = ContentCache(pipeline.store, transaction=pipeline.database.transaction)
    with pipeline.database.transaction() as session:
        content_cache.note_models(session, NumberingEngine.model_version)
    pipeline.finish(accept(pipeline))

    stranger = accept(pipeline, password=None)
    pipeline.split(stranger)

    assert pipeline.document(stranger).error_code == "encrypted"


@pytest.mark.parametrize(
    "method",
    [
        pymupdf.PDF_ENCRYPT_RC4_40,
        pymupdf.PDF_ENCRYPT_RC4_128,
        pymupdf.PDF_ENCRYPT_AES_128,
        pymupdf.PDF_ENCRYPT_AES_256,
    ],
)
def test_every_cipher_of_a_pdf_is_taken_away(tmp_path: Path, method: int) -> None:
    source = tmp_path / "secret.pdf"
    source.write_bytes(plain_file().tobytes(encryption=method, user_pw=PASSWORD))

    with (tmp_path / "open.pdf").open("w+b") as output:
        write_unlocked(source, output, password=PASSWORD, limits=RenderLimits())

    unlocked = pymupdf.open(tmp_path / "open.pdf")
    assert not unlocked.needs_pass
    assert [page.get_text() for page in unlocked] == [page.get_text() for page in plain_file()]


def test_a_wrong_password_is_named(tmp_path: Path) -> None:
    source = tmp_path / "secret.pdf"
    source.write_bytes(SECRET_FILE)

    with (
        (tmp_path / "open.pdf").open("w+b") as output,
        pytest.raises(EncryptedDocumentError, match="wrong"),
    ):
        write_unlocked(source, output, password=PASSWORD.upper(), limits=RenderLimits())
