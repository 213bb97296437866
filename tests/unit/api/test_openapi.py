from collections.abc import Iterator
from typing import Any

import pytest

from api.app import describe_only
from api.openapi import FROZEN, describe, render
from api.scopes import SCOPE_OF_OPERATION

DOCUMENT = describe(describe_only())
OPERATIONS = {
    (method, path): operation
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
}


def references_in(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from references_in(value)
    elif isinstance(node, list):
        for value in node:
            yield from references_in(value)


def test_the_description_is_the_frozen_one() -> None:
    # After a change that is meant: python -m api.openapi
    assert render(DOCUMENT) == FROZEN.read_text(encoding="utf-8")


def test_the_operations_are_named() -> None:
    assert {operation["operationId"] for operation in OPERATIONS.values()} == {
        "submit_document",
        "read_document",
        "list_documents",
        "cancel_document",
        "cancel_batch",
        "delete_document",
        "retry_document",
        "read_page",
        "read_page_image",
        "read_result",
        "stream_events",
        "create_webhook",
        "delete_webhook",
        "enable_webhook",
        "list_webhook_deliveries",
        "list_webhooks",
        "read_webhook",
        "replay_webhook_delivery",
        "rotate_webhook_secret",
        "list_pages",
        "add_objects",
        "create_batch",
        "list_batches",
        "retry_batch",
        "read_report",
        "read_batch",
        "list_batch_documents",
        "create_upload",
        "read_upload",
        "list_upload_parts",
        "complete_upload",
        "abort_upload",
        "read_capacity",
        "probe_events",
        "receive_events",
        "read_liveness",
        "read_metrics",
        "read_readiness",
    }


def test_every_reference_leads_somewhere() -> None:
    schemas = {f"#/components/schemas/{name}" for name in DOCUMENT["components"]["schemas"]}

    assert set(references_in(DOCUMENT)) <= schemas


@pytest.mark.parametrize(
    "operation",
    [key for key in OPERATIONS if key[1].startswith("/v1/") and key[1] != "/v1/events/s3"],
    ids=str,
)
def test_every_operation_on_data_needs_a_key(operation: tuple[str, str]) -> None:
    needed = SCOPE_OF_OPERATION[OPERATIONS[operation]["operationId"]]

    assert OPERATIONS[operation]["security"] == [{"ApiKey": [needed] if needed else []}]
    answers = OPERATIONS[operation]["responses"]
    assert "`unauthenticated`" in answers["401"]["description"]
    assert "`key_expired`" in answers["401"]["description"]
    assert "`too_many_requests`" in answers["429"]["description"]
    assert ("`missing_scope`" in str(answers.get("403"))) == bool(needed)


@pytest.mark.parametrize("method", ["head", "post"])
def test_senders_of_events_have_a_token_of_their_own(method: str) -> None:
    operation = OPERATIONS[method, "/v1/events/s3"]

    assert operation["security"] == [{"EventToken": []}]
    assert "401" in operation["responses"]


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_every_declared_error_is_a_problem_document(operation: tuple[str, str]) -> None:
    errors = {
        status: answer
        for status, answer in OPERATIONS[operation]["responses"].items()
        if status >= "400"
    }

    assert all(
        list(answer["content"]) == ["application/problem+json"] for answer in errors.values()
    )
