"""Flower over HTTP, and all addresses that it answers at."""

from dataclasses import dataclass
from typing import Any, Final

import httpx
from flower.urls import handlers
from flower.views.tasks import TasksDataTable

from tests.support.plain_http import NO_TLS

_TIMEOUT_S: Final = 60.0
# A table that the browser asks for, with a long question.
_READS_BY_POST: Final = {TasksDataTable}
_EVERYTHING_ELSE: Final = ".*"


@dataclass(frozen=True, slots=True)
class Flower:
    """A Flower that serves."""

    url: str
    account: tuple[str, str]

    def get(self, path: str, **parameters: str) -> httpx.Response:
        return self.ask("GET", path, auth=self.account, params=parameters or None)

    def json(self, path: str, **parameters: str) -> Any:
        return self.get(path, **parameters).raise_for_status().json()

    def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        with httpx.Client(trust_env=False, timeout=_TIMEOUT_S, verify=NO_TLS) as client:
            return client.request(method, self.url + path, **options)


def addresses_that_read() -> list[str]:
    """Return the pattern of every address that answers GET."""
    return sorted(pattern for pattern, kind in _handlers() if _takes(kind, "get"))


def addresses_that_change() -> list[str]:
    """Return the pattern of every address whose POST changes a worker or a task."""
    return sorted(
        pattern
        for pattern, kind in _handlers()
        if _takes(kind, "post") and kind not in _READS_BY_POST
    )


def _handlers() -> list[tuple[str, type]]:
    """Return pattern and class of each address; some are tuples, others Tornado's own type."""
    found = [
        (each[0], each[1])
        if isinstance(each, tuple)
        else (each.regex.pattern.removesuffix("$"), each.handler_class)
        for each in handlers
    ]
    return [(pattern, kind) for pattern, kind in found if pattern != _EVERYTHING_ELSE]


def _takes(kind: type, method: str) -> bool:
    """Say whether Flower answers a method itself; what it inherits of Tornado is 405, or a file."""
    return str(getattr(kind, method).__module__).startswith("flower.")
