"""Lets a share of published messages vanish, as a broker that loses writes does.

``DROP_PUBLISHES_FILE`` names a file with the share, in [0, 1]; it is read for each message, so that
whoever wrote it can end the fault. Each loss adds a byte to ``<that file>.dropped``.
"""

import importlib.util
import os
import random
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, Final

_TRANSPORT: Final = "kombu.transport.redis"


class _Watch(MetaPathFinder):
    """Waits for the transport: most processes never import it, and importing it here costs time."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> Any:  # noqa: ANN401, ARG002 - as its base has it
        if fullname != _TRANSPORT:
            return None
        sys.meta_path.remove(self)
        return _patched(importlib.util.find_spec(fullname))


def _patched(spec: ModuleSpec | None) -> ModuleSpec | None:
    if spec is None or spec.loader is None:
        return spec
    execute = spec.loader.exec_module

    def execute_and_patch(module: ModuleType) -> None:
        execute(module)
        _patch(module)

    spec.loader.exec_module = execute_and_patch  # type: ignore[method-assign] # of this one loader
    return spec


def _patch(module: ModuleType) -> None:
    channel: Any = module.Channel
    put = channel._put  # noqa: SLF001 - where kombu writes a message into a queue

    def put_most(self: object, queue: str, message: object, **arguments: object) -> None:
        if random.random() >= _share():  # noqa: S311 - which message is lost is nobody's secret
            put(self, queue, message, **arguments)
        else:
            _count()

    channel._put = put_most  # noqa: SLF001 - see above


def _share() -> float:
    try:
        return float(_file().read_text(encoding="ascii") or 0)
    except (OSError, ValueError):  # not there, or half written
        return 0.0


def _count() -> None:
    dropped = _file().with_name(_file().name + ".dropped")
    with dropped.open("ab", buffering=0) as counter:
        counter.write(b".")


def _file() -> Path:
    return Path(os.environ["DROP_PUBLISHES_FILE"])


sys.meta_path.insert(0, _Watch())
