"""Ends, holds or spoils this process at a named point, when somebody outside asks for it.

``FAULT_POINTS`` names the points (``bench.faults.kill_points`` makes it) and ``FAULT_REDIS_URL``
the Redis in which one is armed: a list ``faults:<point>`` of actions, of which each process that
comes by takes one. So a list of one happens once in a whole fleet, whoever comes by first.

``child`` kills the process, as the kernel does when memory runs out; ``group`` with it all of its
process group, as a lost machine. ``abort`` crashes it in native code, ``memory`` refuses it an
allocation, ``hang`` stops the thread for ever, and ``hold`` until somebody lets it go.

Functions are wrapped as their module is loaded, here and in every process that is spawned. An
unarmed point costs one question to Redis; what is not named is not touched.
"""

import functools
import importlib.machinery
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

HOLD_LIMIT_S = 60


class _Point:
    """One place in one function."""

    def __init__(
        self, name: str, *, target: str, when: str, task: str = "", page_index: int | None = None
    ) -> None:
        self.name = name
        self.module, _, self.function = target.partition(":")
        self.when = when
        self._task = task
        self._page_index = page_index

    def is_meant(self, arguments: Sequence[Any]) -> bool:
        """Say whether the call is about the task or page that the point is limited to, if to any.

        Celery passes a task as its name, or as an object that has one.
        """
        if self._task:
            names = [each if isinstance(each, str) else _name(each) for each in arguments[:2]]
            return self._task in names
        if self._page_index is not None:
            return self._page_index in [getattr(each, "page_index", None) for each in arguments]
        return True


def _name(value: object) -> object:
    return getattr(value, "name", None)


class _Finder:
    """Finds the modules of the points as Python does, and wraps what the points name in them."""

    def __init__(self, points: Sequence[_Point]) -> None:
        self._points = points

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        points = [point for point in self._points if point.module == name]
        if not points:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def execute_and_wrap(module: ModuleType) -> None:
            execute(module)
            for function in {point.function for point in points}:
                _wrap(module, function, [each for each in points if each.function == function])

        spec.loader.exec_module = execute_and_wrap  # type: ignore[method-assign]
        return spec


def _wrap(module: ModuleType, function: str, points: Sequence[_Point]) -> None:
    *owners, name = function.split(".")
    owner: Any = functools.reduce(getattr, owners, module)
    setattr(owner, name, _wrapped(getattr(owner, name), points))


def _wrapped(function: Callable[..., Any], points: Sequence[_Point]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - any function
        meant = [point for point in points if point.is_meant(arguments)]
        for point in meant:
            if point.when == "before":
                _reach(point.name)
        answer = function(*arguments, **named)
        for point in meant:
            if point.when == "after":
                _reach(point.name)
            elif point.when in {"before_commit", "after_commit"}:
                _reach_at(point.when, arguments[0], point.name)
        return answer

    return call


def _reach_at(event_name: str, session: Any, name: str) -> None:  # noqa: ANN401 - SQLAlchemy's
    from sqlalchemy import event  # noqa: PLC0415 - not in processes that have no database

    event.listen(session, event_name, lambda _: _reach(name), once=True)


@functools.cache
def _redis() -> Any:  # noqa: ANN401 - without types here
    import redis  # noqa: PLC0415 - not before the program itself comes to it

    return redis.Redis.from_url(
        os.environ["FAULT_REDIS_URL"], decode_responses=True, socket_timeout=2 * HOLD_LIMIT_S
    )


def _reach(name: str) -> None:
    """Do what is asked of the next who comes by; nothing in most cases.

    Raises:
        MemoryError: this is what is asked for.
    """
    action = _redis().lpop(f"faults:{name}")
    if action is None:
        return
    told = {"pid": os.getpid(), "group": os.getpgid(0), "action": action}
    _redis().rpush(f"faults:{name}:reached", json.dumps(told))
    match action:
        case "hold":
            _redis().blpop([f"faults:{name}:release"], timeout=HOLD_LIMIT_S)
            return
        case "memory":
            raise MemoryError("on purpose")
        case "abort":
            os.abort()
        case "group":
            os.killpg(0, signal.SIGKILL)
        case "child":
            os.kill(os.getpid(), signal.SIGKILL)
    threading.Event().wait()  # not one more statement of the program


sys.meta_path.insert(
    0,
    _Finder([
        _Point(name, **point) for name, point in json.loads(os.environ["FAULT_POINTS"]).items()
    ]),
)
