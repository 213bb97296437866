"""The application: what it is made of, and in which order a request goes through."""

import math
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio
from fastapi import FastAPI
from fastapi.routing import APIRoute

from api import (
    batch_routes,
    capacity_routes,
    direct_upload_routes,
    document_action_routes,
    document_routes,
    event_routes,
    health_routes,
    metrics_routes,
    openapi,
    page_routes,
    problems,
    report_routes,
    result_routes,
    s3_event_routes,
    viewer_routes,
    webhook_routes,
)
from api.answer_deadline import AnswerDeadline
from api.body_limit import BodyLimit
from api.request_log import RequestLog
from api.services import OpenDoors, Services, limit_asking_threads, open_doors
from api.settings import ApiSettings
from workers import program_metrics

Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]

VERSION = "1"
DESCRIPTION = """\
Send documents, watch them being read, fetch the results.

Every error is `application/problem+json` (RFC 9457); match on its `code`.
"""


def create_app(settings: ApiSettings, *, doors: OpenDoors = open_doors) -> FastAPI:
    """Make the application; nothing is connected to before it is started.

    Args:
        settings: what the process was told.
        doors: opens the servers that the operations work with.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        limit_asking_threads(settings)
        with doors(settings) as opened:
            services = Services(settings, opened)
            program_metrics.serve(
                services.metrics, host=settings.metrics_host, port=settings.metrics_port
            )
            app.state.services = services
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(services.watch.run)
                await tasks.start(services.background.run)
                yield
                tasks.cancel_scope.cancel()

    return _assemble(lifespan, answer_timeout_s=settings.api_answer_timeout_s)


def describe_only() -> FastAPI:
    """Make an application that is never started, for its OpenAPI description."""
    return _assemble(None, answer_timeout_s=math.inf)


def end_waiting(app: object) -> None:
    """Answer those who wait for events: the process that serves an application is told to end."""
    services = getattr(app.state, "services", None) if isinstance(app, FastAPI) else None
    if isinstance(services, Services):
        services.watch.end()


def _assemble(lifespan: Lifespan | None, *, answer_timeout_s: float) -> FastAPI:
    app = FastAPI(
        title="Pagefleet",
        version=VERSION,
        description=DESCRIPTION,
        lifespan=lifespan,
        # The built-in pages load scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
        # An address is right or wrong; a redirect would make clients send an upload twice.
        redirect_slashes=False,
        generate_unique_id_function=_operation_id,
    )
    for routes in (
        document_routes,
        document_action_routes,
        direct_upload_routes,
        event_routes,
        page_routes,
        result_routes,
        batch_routes,
        report_routes,
        webhook_routes,
        capacity_routes,
        s3_event_routes,
        health_routes,
        metrics_routes,
        viewer_routes,
    ):
        app.include_router(routes.router)
    streamed = frozenset({document_routes.STREAMED})
    app.add_middleware(BodyLimit, streamed=streamed)
    app.add_middleware(AnswerDeadline, timeout_s=answer_timeout_s, streamed=streamed)
    problems.install(app)
    app.add_middleware(RequestLog)  # added last, so that it stands outermost
    app.openapi = _described_once(app)  # type: ignore[method-assign] # as FastAPI documents it
    return app


def _operation_id(route: APIRoute) -> str:
    return route.name


def _described_once(app: FastAPI) -> Callable[[], dict[str, Any]]:
    def describe() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = openapi.describe(app)
        return app.openapi_schema

    return describe
