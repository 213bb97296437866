from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import pytest
import structlog
from fastapi import FastAPI

from api.app import create_app
from api.services import Doors
from api.settings import ApiSettings
from db.engine import Session
from db.errors import DatabaseUnavailableError
from storage.memory import InMemoryObjectStore
from tests.support.api_server import (
    RecordedDispatch,
    RecordedDrawings,
    RecordedExports,
    unlimited,
)
from tests.support.asgi import ask

KEY = {"Authorization": "Bearer pf_0123_4567"}
SETTINGS = ApiSettings(
    database_url="postgresql://nowhere/none",  # type: ignore[arg-type] # pydantic converts it
    redis_url="redis://nowhere",  # type: ignore[arg-type] # pydantic converts it
    s3_bucket="none",
)


def no_database() -> AbstractContextManager[Session]:
    raise DatabaseUnavailableError("secret address")


def broken_database() -> AbstractContextManager[Session]:
    raise RuntimeError("secret mistake")


def make_app(
    transaction: Callable[[], AbstractContextManager[Session]] = no_database,
    probes: dict[str, Callable[[], None]] | None = None,
) -> FastAPI:
    @contextmanager
    def doors(settings: ApiSettings) -> Iterator[Doors]:
        assert settings is SETTINGS
        yield Doors(
            transaction=transaction,
            store=InMemoryObjectStore(),
            place_for_split=nullcontext,
            send_split=RecordedDispatch(),
            send_drawing=RecordedDrawings(),
            send_export=RecordedExports(),
            probes=probes or {},
            take_request=unlimited,
        )

    return create_app(SETTINGS, doors=doors)


def refuse() -> None:
    raise ConnectionError("secret address")


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nothing", 404, "not_found"),
        ("GET", "/docs", 404, "not_found"),
        ("PATCH", "/v1/documents", 405, "method_not_allowed"),
        ("GET", "/v1/documents", 401, "unauthenticated"),
        ("POST", "/v1/documents", 401, "unauthenticated"),
    ],
)
def test_every_error_is_a_problem_document(method: str, path: str, status: int, code: str) -> None:
    response = ask(make_app(), method, path)

    problem = response.json()
    assert response.status_code == status
    assert response.headers["Content-Type"] == "application/problem+json"
    assert problem.keys() == {"type", "title", "status", "detail", "code", "request_id"}
    assert (problem["status"], problem["code"]) == (status, code)
    assert problem["type"] == f"urn:pagefleet:error:{code}"
    assert problem["request_id"] == response.headers["X-Request-ID"]


def test_a_wrong_method_is_told_the_right_ones() -> None:
    response = ask(make_app(), "DELETE", "/v1/documents")

    assert response.headers["Allow"] == "GET, POST"


def test_a_missing_key_is_told_how_to_send_one() -> None:
    response = ask(make_app(), "GET", "/v1/documents")

    assert response.headers["WWW-Authenticate"] == 'Bearer realm="pagefleet"'


@pytest.mark.parametrize(
    "header", ["Bearer nonsense", "Bearer pf_a_", "Bearer pf_ä_b", "Basic cGY6cGY=", "Bearer"]
)
def test_a_key_that_cannot_be_one_is_refused_without_the_database(header: str) -> None:
    response = ask(make_app(), "GET", "/v1/documents", headers={"Authorization": header.encode()})

    assert response.status_code == 401
    assert response.headers["WWW-Authenticate"].startswith("Bearer")


def test_a_database_that_is_away_is_a_503_without_its_address() -> None:
    response = ask(make_app(), "GET", "/v1/documents", headers=KEY)

    assert response.status_code == 503
    assert response.json()["code"] == "database_unavailable"
    assert response.headers["Retry-After"] == "5"
    assert "secret" not in response.text


def test_a_mistake_of_ours_is_a_500_without_its_text() -> None:
    with structlog.testing.capture_logs() as lines:
        response = ask(make_app(broken_database), "GET", "/v1/documents", headers=KEY)

    assert response.status_code == 500
    assert response.json()["code"] == "internal"
    assert "secret" not in response.text
    assert [line["log_level"] for line in lines] == ["error", "info"]
    assert isinstance(lines[0]["exc_info"], RuntimeError)


def test_a_well_formed_request_id_is_kept() -> None:
    response = ask(make_app(), "GET", "/livez", headers={"X-Request-ID": "job-7:retry.2"})

    assert response.headers["X-Request-ID"] == "job-7:retry.2"


@pytest.mark.parametrize("sent", ["", "a b", "x" * 129, 'a"b', "<b>"])
def test_another_request_id_is_replaced(sent: str) -> None:
    response = ask(make_app(), "GET", "/livez", headers={"X-Request-ID": sent})

    assert response.headers["X-Request-ID"] not in {"", sent}


@pytest.mark.parametrize("path", ["/livez", "/nothing", "/v1/documents"])
def test_every_answer_has_the_security_headers(path: str) -> None:
    headers = ask(make_app(), "GET", path).headers

    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["Content-Security-Policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert headers["Cache-Control"] == "no-store"


def test_a_request_is_logged_by_its_template_and_without_its_key() -> None:
    with structlog.testing.capture_logs() as lines:
        ask(make_app(), "GET", "/v1/documents/private-name?token=x", headers=KEY)

    (line,) = [line for line in lines if line["event"] == "request finished"]
    assert line["method"] == "GET"
    assert line["route"] == "/v1/documents/{document_id}"
    assert line["status"] == 503
    assert line["seconds"] >= 0
    assert "4567" not in str(lines)
    assert "private-name" not in str(lines)


def test_liveness_asks_nobody() -> None:
    response = ask(make_app(probes={"database": refuse}), "GET", "/livez")

    assert (response.status_code, response.json()) == (200, {"status": "alive"})


def test_readiness_is_given_when_all_servers_answer() -> None:
    response = ask(make_app(probes={"database": lambda: None}), "GET", "/readyz")

    assert response.status_code == 200
    assert response.json() == {"status": "ready", "servers": {"database": True}}


def test_readiness_names_the_server_that_fails() -> None:
    probes = {"database": lambda: None, "storage": refuse}

    response = ask(make_app(probes=probes), "GET", "/readyz")

    assert response.status_code == 503
    assert response.json()["code"] == "not_serving"
    assert response.json()["servers"] == {"database": True, "storage": False}
    assert response.json()["detail"] == "No answer from: storage."
    assert "secret" not in response.text


def test_making_an_application_connects_to_nothing() -> None:
    def doors(settings: ApiSettings) -> AbstractContextManager[Doors]:
        raise AssertionError(settings)

    assert create_app(SETTINGS, doors=doors).title == "Pagefleet"
