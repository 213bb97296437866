from collections.abc import Iterator

import pytest

from api.errors import ERRORS, ApiError, code_of_status, is_answered, translate
from db.errors import DatabaseError, DatabaseUnavailableError, RowNotFoundError
from storage.errors import StorageError, StorageUnavailableError
from workers.ocr.errors import DocumentError, FileTooLargeError, OcrError

# Section 6 of the design, which fixes the codes that users match on.
DESIGNED_CODES = {
    "unsupported_media_type",
    "file_too_large",
    "too_many_pages",
    "page_too_large",
    "encrypted",
    "damaged",
    "empty",
    "page_timeout",
    "page_crashed",
    "gpu_out_of_memory",
    "model_missing",
    "storage_unavailable",
    "database_unavailable",
    "worker_lost",
    "cancelled",
    "quota_exceeded",
    "internal",
}


def subclasses_of(kind: type[OcrError]) -> Iterator[type[OcrError]]:
    for subclass in kind.__subclasses__():
        yield subclass
        yield from subclasses_of(subclass)


def test_every_designed_code_has_a_meaning() -> None:
    assert set(ERRORS) >= DESIGNED_CODES


@pytest.mark.parametrize("kind", list(subclasses_of(OcrError)))
def test_every_error_of_the_core_has_a_meaning(kind: type[OcrError]) -> None:
    assert kind.code in ERRORS


@pytest.mark.parametrize("kind", list(subclasses_of(DocumentError)))
def test_every_error_of_a_document_can_be_an_answer(kind: type[OcrError]) -> None:
    assert is_answered(kind.code) or kind.code == OcrError.code


@pytest.mark.parametrize("code", sorted(ERRORS))
def test_every_code_says_what_can_be_done(code: str) -> None:
    assert ERRORS[code].title
    assert ERRORS[code].detail.endswith(".")


@pytest.mark.parametrize("code", [code for code in ERRORS if ERRORS[code].status in {429, 503}])
def test_who_is_refused_for_now_is_told_when_to_come_back(code: str) -> None:
    assert ERRORS[code].retry_after_s


@pytest.mark.parametrize(
    ("error", "code", "status"),
    [
        (FileTooLargeError("secret", limit=1, actual=2), "file_too_large", 413),
        (StorageUnavailableError("secret"), "storage_unavailable", 503),
        (StorageError("secret"), "internal", 500),
        (DatabaseUnavailableError("secret"), "database_unavailable", 503),
        (RowNotFoundError("secret"), "not_found", 404),
        (DatabaseError("secret"), "internal", 500),
        (KeyError("secret"), "internal", 500),
    ],
)
def test_an_exception_becomes_its_code_without_its_text(
    error: Exception, code: str, status: int
) -> None:
    answer = translate(error)

    assert (answer.code, answer.kind.status) == (code, status)
    assert "secret" not in answer.detail


def test_what_an_operation_says_itself_stands_above_the_table() -> None:
    assert translate(ApiError("not_serving", detail="No answer.")).detail == "No answer."


@pytest.mark.parametrize(
    ("status", "code"),
    [(404, "not_found"), (418, "bad_request"), (500, "internal"), (503, "internal")],
)
def test_every_status_of_the_framework_has_a_code(status: int, code: str) -> None:
    assert code_of_status(status) == code
