"""Every route of the API has its scope, or is known to need no key."""

from collections.abc import Iterator

from fastapi.routing import APIRoute

from api.app import describe_only
from api.openapi import describe
from api.scopes import SCOPE_DESCRIPTIONS, SCOPE_OF_OPERATION
from db.scopes import Scope

WITHOUT_KEY = {
    "read_liveness",
    # No tenant is in it, and no id.
    "read_metrics",
    "read_readiness",
    "read_viewer",
    "read_viewer_asset",
    # Object stores have a token of their own.
    "probe_events",
    "receive_events",
}
# What the framework adds itself; it has no dependencies at all.
OF_FRAMEWORK = {"openapi"}


def routes_in(routes: list[object]) -> Iterator[object]:
    for route in routes:
        router = getattr(route, "original_router", None)
        if router is None:
            yield route
        else:
            yield from routes_in(router.routes)


APP = describe_only()
ROUTES = list(routes_in([*APP.routes]))
OPERATIONS = [route for route in ROUTES if isinstance(route, APIRoute)]


def test_every_route_that_needs_a_key_has_a_scope_and_no_other_one_has() -> None:
    with_key = {
        operation["operationId"]
        for methods in describe(APP)["paths"].values()
        for operation in methods.values()
        if "ApiKey" in str(operation.get("security"))
    }

    assert with_key == set(SCOPE_OF_OPERATION)


def test_the_routes_without_a_key_are_known() -> None:
    # Whoever adds one decides here that everybody may call it.
    assert {route.name for route in OPERATIONS} - set(SCOPE_OF_OPERATION) == WITHOUT_KEY


def test_nothing_is_served_beside_them() -> None:
    others = {getattr(route, "name", None) for route in ROUTES if not isinstance(route, APIRoute)}

    assert others == OF_FRAMEWORK


def test_a_name_is_that_of_one_route() -> None:
    assert len({route.name for route in OPERATIONS}) == len(OPERATIONS)


def test_every_scope_is_needed_somewhere_and_described() -> None:
    assert {scope for scope in SCOPE_OF_OPERATION.values() if scope is not None} == set(Scope)
    assert set(SCOPE_DESCRIPTIONS) == set(Scope)
