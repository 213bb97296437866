"""What the API counts of its requests, whatever a client writes into them."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import pytest
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
    free_port,
    unlimited,
)
from tests.support.asgi import ask
from tests.support.scraped import Scraped, parse

REQUESTS = "pagefleet_http_requests_total"


def no_database() -> AbstractContextManager[Session]:
    raise DatabaseUnavailableError("none")


@contextmanager
def doors(_: ApiSettings) -> Iterator[Doors]:
    yield Doors(
        no_database,
        InMemoryObjectStore(),
        RecordedDispatch(),
        nullcontext,
        RecordedDrawings(),
        RecordedExports(),
        {},
        unlimited,
    )


def make_app(**settings: int) -> FastAPI:
    return create_app(
        ApiSettings(
            database_url="postgresql://nowhere/none",  # type: ignore[arg-type] # pydantic converts it
            redis_url="redis://nowhere",  # type: ignore[arg-type] # pydantic converts it
            s3_bucket="none",
            api_answer_timeout_s=300,  # the first request of an application takes its time
            **settings,  # type: ignore[arg-type] # none of them is a place
        ),
        doors=doors,
    )


def shown() -> Scraped:
    answer = ask(make_app(), "GET", "/metrics")
    assert answer.status_code == 200
    return parse(answer.text)


@pytest.mark.parametrize(
    ("method", "path", "counted_as"),
    [
        ("GET", "/livez", {"method": "GET", "route": "/livez", "status": "200"}),
        (
            "GET",
            "/v1/documents/0190-kohlrabi",
            {"method": "GET", "route": "/v1/documents/{document_id}", "status": "401"},
        ),
        ("GET", "/kohlrabi", {"method": "GET", "route": "none", "status": "404"}),
        ("KOHLRABI", "/livez", {"method": "other", "status": "405"}),
    ],
)
def test_a_request_counts_under_its_route_and_by_nothing_that_the_client_chose(
    method: str, path: str, counted_as: dict[str, str]
) -> None:
    before = shown().find(REQUESTS, **counted_as) or 0

    ask(make_app(), method, path)

    after = shown()
    assert after.value(REQUESTS, **counted_as) == before + 1
    assert "kohlrabi" not in after.text.lower()


def test_the_time_that_requests_took_is_shown_by_route() -> None:
    before = shown().find("pagefleet_http_request_seconds_count", route="/livez") or 0

    ask(make_app(), "GET", "/livez")

    assert shown().value("pagefleet_http_request_seconds_count", route="/livez") == before + 1


def test_without_a_database_the_rest_is_shown() -> None:
    scraped = shown()

    assert scraped.value("pagefleet_build_info", program="api") == 1
    assert scraped.find("pagefleet_queue_pages") is None


def test_metrics_with_a_port_of_their_own_are_not_at_the_address_of_the_api() -> None:
    answer = ask(make_app(metrics_port=free_port()), "GET", "/metrics")

    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
