"""The OpenAPI description; ``python -m api.openapi`` writes the frozen one."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from api.auth import bearer
from api.problems import Problem, declared
from api.scopes import SCOPE_OF_OPERATION
from api.source_reference import SourceReference
from workers.ocr.options import OcrOptions

FROZEN = Path(__file__).parent.parent / "docs" / "openapi.json"
_FRAMEWORK_SCHEMAS = ("HTTPValidationError", "ValidationError")
_KEY_SCHEME = bearer.scheme_name
_TEMPLATE = "#/components/schemas/{model}"


def describe(app: FastAPI) -> dict[str, Any]:
    """Return the description of an application, with its errors as they really are."""
    document = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes
    )
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    for name in _FRAMEWORK_SCHEMAS:
        schemas.pop(name, None)
    for model in (Problem, OcrOptions, SourceReference):
        described = model.model_json_schema(ref_template=_TEMPLATE)
        schemas.update(described.pop("$defs", {}))
        schemas[model.__name__] = described
    _describe_keys(document)
    return document


def _describe_keys(document: dict[str, Any]) -> None:
    """Add what may befall any operation that needs a key, and which scope of it that needs."""
    for operation in _operations(document):
        name = operation["operationId"]
        if name not in SCOPE_OF_OPERATION:
            continue
        needed = SCOPE_OF_OPERATION[name]
        codes = ["key_expired", "key_revoked", "too_many_requests"]
        if needed is not None:
            operation["security"] = [{_KEY_SCHEME: [needed.value]}]
            codes.append("missing_scope")
        for status, answer in declared(*codes).items():
            known = operation["responses"].setdefault(str(status), answer)
            if known is not answer:
                known["description"] += f"; {answer['description']}"


def _operations(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for methods in document["paths"].values():
        yield from methods.values()


def render(document: dict[str, Any]) -> str:
    """Return a description as it is kept in a file."""
    return json.dumps(document, indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def main() -> None:
    """Write the frozen description anew, after a change that is meant."""
    from api.app import describe_only  # noqa: PLC0415 - api.app imports this module

    FROZEN.write_text(render(describe(describe_only())), encoding="utf-8")


if __name__ == "__main__":
    main()
