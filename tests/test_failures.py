"""The error table: no class and no code is left out of it."""

import errno
import subprocess
import sys
from collections.abc import Iterator

import pytest

import db.errors
import storage.errors
import workers.ocr.errors
from db.errors import DatabaseUnavailableError, StaleStateError
from storage.errors import (
    ObjectChangedError,
    SourceNotFoundError,
    SourceRefusedError,
    StorageUnavailableError,
)
from workers.app import HostExhaustedError
from workers.dispatch import DispatchError
from workers.failures import (
    CATEGORIES,
    ERROR_CODES,
    EXIT_POISONED,
    WOKEN,
    Category,
    Failure,
    classify,
    decided,
)
from workers.ocr.errors import (
    DamagedPageError,
    EncryptedDocumentError,
    InferenceError,
    ModelFileError,
    OcrError,
    RenderChildError,
)
from workers.settings import SettingsError

CODES_OF_THE_CONTRACT = {
    "unsupported_media_type",
    "file_too_large",
    "too_many_pages",
    "exceeds_max_pages",
    "no_such_page",
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
    "source_not_found",
    "source_refused",
    "source_changed",
    "worker_lost",
    "cancelled",
    "quota_exceeded",
    "internal",
}


def _descendants(root: type[BaseException]) -> Iterator[type[BaseException]]:
    yield root
    for child in root.__subclasses__():
        yield from _descendants(child)


OUR_ERRORS = sorted(
    {
        *_descendants(workers.ocr.errors.OcrError),
        *_descendants(storage.errors.StorageError),
        *_descendants(db.errors.DatabaseError),
        *_descendants(DispatchError),
        *_descendants(SettingsError),
    },
    key=lambda kind: kind.__qualname__,
)
OCR_ERRORS = sorted(_descendants(OcrError), key=lambda kind: kind.__qualname__)


@pytest.mark.parametrize("kind", OUR_ERRORS)
def test_every_error_class_has_a_category(kind: type[BaseException]) -> None:
    assert any(issubclass(kind, listed) for listed, _ in CATEGORIES)


@pytest.mark.parametrize("kind", OCR_ERRORS)
def test_every_error_of_the_core_has_a_code_that_users_can_read(kind: type[OcrError]) -> None:
    assert kind.code in ERROR_CODES


def test_the_codes_are_those_of_the_contract() -> None:
    assert set(ERROR_CODES) == CODES_OF_THE_CONTRACT


@pytest.mark.parametrize("row", ERROR_CODES.values(), ids=str)
def test_every_code_tells_what_happened_and_what_to_do(row: object) -> None:
    sentences = row.sentence.split(". ")  # type: ignore[attr-defined]  # parametrized by value

    assert len(sentences) >= 2


def test_every_category_says_who_is_woken() -> None:
    assert set(WOKEN) == set(Category)


def test_no_class_is_hidden_behind_its_base() -> None:
    kinds = [kind for kind, _ in CATEGORIES]

    hidden = [
        kind for at, kind in enumerate(kinds) if any(issubclass(kind, up) for up in kinds[:at])
    ]

    assert hidden == []


@pytest.mark.parametrize(
    ("error", "category", "code"),
    [
        (EncryptedDocumentError("x"), Category.INPUT, "encrypted"),
        (DamagedPageError("x"), Category.INPUT, "damaged"),
        (StorageUnavailableError("x"), Category.TRANSIENT, "storage_unavailable"),
        (DatabaseUnavailableError("x"), Category.TRANSIENT, "database_unavailable"),
        (InferenceError("x"), Category.CAPACITY, "internal"),
        (RenderChildError("x"), Category.CAPACITY, "internal"),
        (MemoryError(), Category.CAPACITY, "internal"),
        (StaleStateError("x"), Category.SUPERSEDED, "internal"),
        (ModelFileError("x"), Category.CONFIGURATION, "model_missing"),
        (SourceNotFoundError("x"), Category.INPUT, "source_not_found"),
        (SourceRefusedError("x"), Category.INPUT, "source_refused"),
        (ObjectChangedError("x"), Category.INPUT, "source_changed"),
        (KeyError("x"), Category.BUG, "internal"),
    ],
)
def test_an_error_is_sorted_by_its_type(
    error: BaseException, category: Category, code: str
) -> None:
    failure = classify(error)

    assert (failure.category, failure.code) == (category, code)


class Recorder:
    """Remembers what was recorded."""

    def __init__(self) -> None:
        self.put_backs: list[Failure] = []
        self.failed: list[Failure] = []

    def run(self, error: BaseException) -> None:
        with decided(put_back=self.put_backs.append, fail=self.failed.append):
            raise error


def test_input_at_fault_ends_quietly_as_failed() -> None:
    recorder = Recorder()

    recorder.run(EncryptedDocumentError("x"))

    assert [failure.code for failure in recorder.failed] == ["encrypted"]


def test_a_passing_fault_is_put_back_and_raised() -> None:
    recorder = Recorder()

    with pytest.raises(StorageUnavailableError):
        recorder.run(StorageUnavailableError("x"))

    assert [failure.is_excused for failure in recorder.put_backs] == [True]


def test_a_failure_of_the_runtime_counts_as_an_attempt() -> None:
    recorder = Recorder()

    with pytest.raises(InferenceError):
        recorder.run(InferenceError("x"))

    assert [failure.is_excused for failure in recorder.put_backs] == [False]


def test_superseded_work_ends_without_a_trace() -> None:
    recorder = Recorder()

    recorder.run(StaleStateError("x"))

    assert recorder.put_backs + recorder.failed == []


def test_a_bug_is_recorded_and_raised() -> None:
    recorder = Recorder()

    with pytest.raises(ZeroDivisionError):
        recorder.run(ZeroDivisionError())

    assert [failure.code for failure in recorder.failed] == ["internal"]


@pytest.mark.parametrize("cause", [errno.ENOSPC, errno.EROFS, errno.EIO])
def test_a_full_or_broken_disk_costs_the_document_no_attempt(cause: int) -> None:
    recorder = Recorder()

    with pytest.raises(OSError, match="disk"):
        recorder.run(OSError(cause, "of the disk"))

    assert [failure.is_excused for failure in recorder.put_backs] == [True]


def test_a_worker_that_is_stopped_gives_its_work_back_and_goes() -> None:
    recorder = Recorder()

    with pytest.raises(SystemExit):
        recorder.run(SystemExit(0))

    assert [failure.category for failure in recorder.put_backs] == [Category.INTERRUPTED]


def test_a_stopped_worker_goes_even_when_its_work_was_taken_over() -> None:
    def stale(_failure: Failure) -> None:
        raise StaleStateError("x")

    with pytest.raises(SystemExit), decided(put_back=stale, fail=stale):
        raise SystemExit(0)


def test_no_memory_error_leaves_a_task_because_celery_would_end_the_worker() -> None:
    recorder = Recorder()

    with pytest.raises(HostExhaustedError):
        recorder.run(MemoryError())

    assert [failure.is_excused for failure in recorder.put_backs] == [False]


POISONED = """
from workers.failures import decided
from workers.ocr.errors import PoisonedContextError
from db.errors import StaleStateError
def stale(failure):
    raise StaleStateError("x")
with decided(put_back=stale, fail=stale):
    raise PoisonedContextError("x")
"""


def test_a_poisoned_process_ends_even_when_its_work_was_taken_over() -> None:
    ended = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", POISONED], check=False, capture_output=True
    )

    assert ended.returncode == EXIT_POISONED


def test_input_whose_failure_could_not_be_recorded_is_raised() -> None:
    def lost(_failure: Failure) -> None:
        raise DatabaseUnavailableError("x")

    with pytest.raises(EncryptedDocumentError), decided(put_back=lost, fail=lost):
        raise EncryptedDocumentError("x")


def test_the_first_error_is_raised_when_recording_it_fails() -> None:
    def lost(_failure: Failure) -> None:
        raise DatabaseUnavailableError("x")

    with pytest.raises(StorageUnavailableError), decided(put_back=lost, fail=lost):
        raise StorageUnavailableError("x")


def test_a_failure_of_work_that_somebody_else_took_over_is_not_raised() -> None:
    def stale(_failure: Failure) -> None:
        raise StaleStateError("x")

    with decided(put_back=stale, fail=stale):
        raise StorageUnavailableError("x")
