"""A renamed function would disarm its fault in silence, and the test of it pass."""

import importlib
import inspect
from functools import reduce
from typing import Any

import pytest

from bench.faults.kill_points import POINTS, KillPoint
from workers.celeryconfig import ROUTES

AT_COMMIT = [point for point in POINTS.values() if point.when.endswith("_commit")]


def function_of(point: KillPoint) -> Any:
    module, _, name = point.target.partition(":")
    return reduce(getattr, name.split("."), importlib.import_module(module))


@pytest.mark.parametrize("point", POINTS.values(), ids=POINTS)
def test_the_function_of_a_point_is_there(point: KillPoint) -> None:
    assert inspect.isfunction(function_of(point))


@pytest.mark.parametrize("point", AT_COMMIT)
def test_a_point_at_a_commit_has_the_session_in_its_hands(point: KillPoint) -> None:
    assert next(iter(inspect.signature(function_of(point)).parameters)) == "session"


def test_names_of_tasks_are_those_of_the_fleet() -> None:
    assert {point.task for point in POINTS.values() if point.task} <= set(ROUTES)
