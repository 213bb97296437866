"""Every operation with every scope, on the real API."""

import re
from collections.abc import Iterable

import pytest

from api.app import describe_only
from api.openapi import describe
from api.scopes import SCOPE_OF_OPERATION
from db import api_keys
from db.engine import Database
from db.ids import new_id
from db.scopes import Scope
from tests.support.api_server import RunningApi, client_of

CALLS = {
    operation["operationId"]: (method, path)
    for path, methods in describe(describe_only())["paths"].items()
    for method, operation in methods.items()
    if operation["operationId"] in SCOPE_OF_OPERATION
}


def make_key_with(database: Database, scopes: Iterable[Scope]) -> str:
    with database.transaction() as session:
        return api_keys.create(session, tenant="archive", name="narrow", scopes=scopes)


def refused_scopes(api: RunningApi, key: str) -> dict[str, str | None]:
    """Ask for everything, and return which scope each operation found missing."""
    with client_of(api.url, key) as client:
        answers = {}
        for name, (method, path) in CALLS.items():
            filled = re.sub(r"\{page_number\}", "1", path)
            filled = re.sub(r"\{\w+\}", str(new_id()), filled)
            answers[name] = client.request(method, filled)
    assert all(answer.status_code not in {401, 405, 500} for answer in answers.values())
    return {
        name: answer.json()["scope"] if answer.status_code == 403 else None
        for name, answer in answers.items()
    }


@pytest.mark.parametrize("scope", [*Scope])
def test_a_key_of_one_scope_may_do_what_needs_that_and_nothing_else(
    api: RunningApi, scope: Scope
) -> None:
    key = make_key_with(api.database, [scope])

    refused = refused_scopes(api, key)

    assert refused == {
        name: None if needed in {scope, None} else needed
        for name, needed in SCOPE_OF_OPERATION.items()
    }


def test_a_key_of_all_scopes_may_do_everything(api: RunningApi) -> None:
    key = make_key_with(api.database, Scope)

    assert set(refused_scopes(api, key).values()) == {None}


def test_a_refusal_is_a_problem_that_names_the_scope(api: RunningApi) -> None:
    with client_of(api.url, make_key_with(api.database, [Scope.READ])) as client:
        answer = client.post("/v1/documents", files={"file": ("a.pdf", b"%PDF-1.7")})

    problem = answer.json()
    assert answer.status_code == 403
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert (problem["code"], problem["scope"]) == ("missing_scope", "write")
    assert "'write'" in problem["detail"]
    assert 'error="insufficient_scope", scope="write"' in answer.headers["WWW-Authenticate"]
