import json
import logging
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from workers.observability import configure_logging, worker_says


@pytest.fixture
def log(capsys: pytest.CaptureFixture[str]) -> Iterator[pytest.CaptureFixture[str]]:
    """Let a test set up logging, on the streams that are its own."""
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    yield capsys
    root.handlers[:] = before
    root.setLevel(level)
    logging.captureWarnings(capture=False)
    structlog.reset_defaults()


def written(log: pytest.CaptureFixture[str]) -> dict[str, Any]:
    (line,) = log.readouterr().err.splitlines()
    record: dict[str, Any] = json.loads(line)
    return record


def test_an_address_is_written_without_its_credentials(log: pytest.CaptureFixture[str]) -> None:
    configure_logging("info")
    structlog.get_logger("a").warning("lost", url="redis://user:hush@host:6379/0")

    assert written(log)["url"] == "redis://**@host:6379/0"


def test_a_password_may_hold_an_at_sign(log: pytest.CaptureFixture[str]) -> None:
    configure_logging("info")
    structlog.get_logger("a").warning("lost", url="redis://user:hu@sh@host:6379/0")

    assert written(log)["url"] == "redis://**@host:6379/0"


@pytest.mark.parametrize(
    "address",
    [
        "https://{}@h/k",
        "https://h/k?X-Amz-Security-Token={}&a=b",
        "postgresql://h/d?user=u&password={}&a=b",
    ],
)
def test_a_secret_behind_an_address_is_left_out(
    log: pytest.CaptureFixture[str], address: str
) -> None:
    configure_logging("info")
    structlog.get_logger("a").warning("lost", url=address.format("hush"))

    assert written(log)["url"] == address.format("**")


def test_a_traceback_is_written_without_credentials(log: pytest.CaptureFixture[str]) -> None:
    error = ValueError("no postgresql://u:hush@h/d, no https://h/k?X-Amz-Signature=hush&a=b")

    configure_logging("info")
    logging.getLogger("library").error("failed", exc_info=error)

    record = written(log)
    assert "ValueError: no postgresql://**@h/d" in record["exception"]
    assert "X-Amz-Signature=**&a=b" in record["exception"]
    assert "hush" not in json.dumps(record)


def test_an_address_without_credentials_stays_as_it_is(log: pytest.CaptureFixture[str]) -> None:
    configure_logging("info")
    structlog.get_logger("a").info("at http://127.0.0.1:8000/a:b", mail="a:b@c")

    record = written(log)
    assert record["event"] == "at http://127.0.0.1:8000/a:b"
    assert record["mail"] == "a:b@c"


def test_a_warning_is_a_line_of_the_log(log: pytest.CaptureFixture[str]) -> None:
    configure_logging("info")
    warnings.simplefilter("always")
    warnings.warn("two\nlines", stacklevel=1)

    record = written(log)
    assert record["logger"] == "py.warnings"
    assert "two\nlines" in record["event"]


def test_the_pool_logs_as_everybody_does(log: pytest.CaptureFixture[str]) -> None:
    pool = logging.getLogger("multiprocessing")
    pool.addHandler(logging.StreamHandler())
    pool.propagate = False

    configure_logging("info")
    pool.warning("child process exits")

    assert written(log)["event"] == "child process exits"


def test_what_celery_says_when_it_stops_is_a_line_of_the_log(
    capfd: pytest.CaptureFixture[str],
) -> None:
    worker_says("\nworker: Soft shutdown (MainProcess)\n")

    assert json.loads(capfd.readouterr().err)["event"] == "worker: Soft shutdown (MainProcess)"
