"""One log line a request, its id, its place in the metrics, and the headers of every answer."""

import re
import secrets
import time
from collections.abc import Mapping

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.http_metrics import count_request

REQUEST_ID_HEADER = "X-Request-ID"
_WELL_FORMED_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_QUIET_ROUTES = frozenset({"/livez", "/metrics", "/readyz"})
_INTERNAL_STATUS = 500

# The API answers with data, never with a page that a browser should run or frame.
SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

log = structlog.get_logger(__name__)


def request_id_of(scope: Scope) -> str:
    """Return the id that ``RequestLog`` gave to a request."""
    return str(scope["state"]["request_id"])


def note_tenant(scope: Scope, tenant: str) -> None:
    """Say whose request this is, for its log line."""
    scope["state"]["tenant"] = tenant


def add_headers(scope: Scope, headers: Mapping[str, str]) -> None:
    """Let the answer to a request have further headers, whatever the answer is."""
    scope["state"].setdefault("headers", {}).update(headers)


class RequestLog:
    """Gives a request its id, an answer its headers, and the log its line; stands outermost."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _request_id(scope)
        scope.setdefault("state", {})["request_id"] = request_id
        started_at = time.monotonic()
        status = _INTERNAL_STATUS

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers[REQUEST_ID_HEADER] = request_id
                added = scope["state"].get("headers", {})
                for name, value in {**SECURITY_HEADERS, **added}.items():
                    headers.setdefault(name, value)
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=request_id):
            try:
                await self._app(scope, receive, send_with_headers)
            finally:
                _note(scope, status, time.monotonic() - started_at)


def _request_id(scope: Scope) -> str:
    sent = Headers(scope=scope).get(REQUEST_ID_HEADER, "")
    return sent if _WELL_FORMED_ID.fullmatch(sent) else secrets.token_hex(16)


def _note(scope: Scope, status: int, seconds: float) -> None:
    # The route's template, never the path: a path holds ids, and a wrong one may hold anything.
    route = getattr(scope.get("route"), "path", None)
    line = log.debug if route in _QUIET_ROUTES else log.info
    line(
        "request finished",
        method=scope["method"],
        route=route,
        status=status,
        seconds=round(seconds, 4),
        tenant=scope["state"].get("tenant"),
    )
    count_request(scope["method"], route, status, seconds)
