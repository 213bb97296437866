"""Errors as ``application/problem+json`` (RFC 9457), the framework's own included."""

import json
from typing import Any

import structlog
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.errors import (
    ERRORS,
    Answer,
    ApiError,
    FieldProblem,
    InvalidFieldsError,
    code_of_status,
    translate,
)
from api.request_log import request_id_of

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:pagefleet:error:"
_INTERNAL_STATUS = 500
_NOT_ALLOWED = 405
_METHODS = ("DELETE", "GET", "HEAD", "PATCH", "POST", "PUT")

log = structlog.get_logger(__name__)


class ProblemField(BaseModel):
    """What is wrong with one field of a request."""

    field: str = Field(description="Where: a field's name, or a dotted path into it.")
    message: str = Field(description="What is wrong with it.")


class Problem(BaseModel):
    """An error (RFC 9457). Match on `code`; the texts may change."""

    type: str = Field(description="`urn:pagefleet:error:` and the code.")
    title: str = Field(description="What the code means, in a few words.")
    status: int = Field(description="The status of the answer.")
    detail: str = Field(description="What happened, and what can be done about it.")
    code: str = Field(description="The error, for programs; see docs/errors.md for the list.")
    request_id: str = Field(description="Names this request in the logs.")
    errors: list[ProblemField] | None = Field(
        default=None, description="Which fields are wrong; only with `invalid_request`."
    )


def declared(*codes: str) -> dict[int | str, dict[str, Any]]:
    """Return the error answers of an operation for its OpenAPI description.

    Raises:
        ValueError: a code is never an answer.
    """
    by_status: dict[int | str, list[str]] = {}
    # Whatever asks the database may have to wait for it.
    for code in (*codes, "busy") if "database_unavailable" in codes else codes:
        status = ERRORS[code].status
        if status is None:
            raise ValueError(f"{code} is never an answer")
        by_status.setdefault(status, []).append(code)
    return {
        status: {
            "description": "; ".join(f"{ERRORS[code].title} (`{code}`)" for code in listed),
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        for status, listed in by_status.items()
    }


def problem_response(request: Request, answer: Answer) -> Response:
    """Return an error as it goes over the wire."""
    status = answer.kind.status or _INTERNAL_STATUS
    problem = Problem(
        type=TYPE_PREFIX + answer.code,
        title=answer.kind.title,
        status=status,
        detail=answer.detail,
        code=answer.code,
        request_id=request_id_of(request.scope),
        errors=[ProblemField(field=each.field, message=each.message) for each in answer.fields]
        or None,
    )
    headers = {"Cache-Control": "no-store", **answer.headers}
    if answer.kind.retry_after_s is not None:
        headers.setdefault("Retry-After", str(answer.kind.retry_after_s))
    members = {**problem.model_dump(exclude_none=True), **answer.extra}
    return Response(
        json.dumps(members, ensure_ascii=False).encode(),
        status_code=status,
        headers=headers,
        media_type=MEDIA_TYPE,
    )


def install(app: FastAPI) -> None:
    """Make every error of the application a problem document."""
    app.add_exception_handler(RequestValidationError, _on_invalid_request)
    app.add_exception_handler(HTTPException, _on_framework_error)
    app.add_middleware(CaughtErrors)


class CaughtErrors:
    """Answers whatever an operation raises; what is our fault is logged with its cause."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_started = False

        async def send_and_note(message: Message) -> None:
            nonlocal is_started
            is_started = is_started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, send_and_note)
        except Exception as error:
            answer = translate(error)
            _log(answer, error)
            if is_started:
                # Half an answer cannot become an error; the server breaks the connection, and
                # the client misses bytes of the announced length.
                raise
            await problem_response(Request(scope), answer)(scope, receive, send)


def _log(answer: Answer, error: Exception) -> None:
    if answer.code == "internal":
        log.error("request failed", code=answer.code, exc_info=error)
    elif answer.kind.status is not None and answer.kind.status > _INTERNAL_STATUS:
        # A server that is away is no mistake of ours: its stack would say the same each time.
        log.warning(
            "request could not be served", code=answer.code, cause=type(error.__cause__).__name__
        )


async def _on_invalid_request(request: Request, error: Exception) -> Response:
    if not isinstance(error, RequestValidationError):
        raise TypeError(type(error))
    problems = [FieldProblem(_path(each["loc"]), each["msg"]) for each in error.errors()]
    if any(each["type"] == "json_invalid" for each in error.errors()):
        return problem_response(request, translate(ApiError("malformed_body")))
    return problem_response(request, translate(InvalidFieldsError(*problems)))


async def _on_framework_error(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise TypeError(type(error))
    headers = dict(error.headers or {})
    if error.status_code == _NOT_ALLOWED:
        # The framework names those of the first operation at this address alone.
        headers["Allow"] = ", ".join(sorted(_methods_at(request)))
    answer = translate(ApiError(code_of_status(error.status_code), headers=headers))
    return problem_response(request, answer)


def _methods_at(request: Request) -> set[str]:
    app: FastAPI = request.scope["app"]
    return {
        method
        for method in _METHODS
        if any(
            route.matches({**request.scope, "method": method})[0] is Match.FULL
            for route in app.routes
        )
    }


def _path(location: tuple[int | str, ...]) -> str:
    """Name a field without the part of the request that it is in: ``body.options.dpi``."""
    return ".".join(str(each) for each in location[1:]) or str(location[0])
