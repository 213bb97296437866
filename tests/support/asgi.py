"""Ask an application without a network."""

from functools import partial
from typing import Any

import anyio
import httpx
from fastapi import FastAPI


def ask(app: FastAPI, method: str, path: str, **arguments: Any) -> httpx.Response:
    """Start the application, send one request, stop it, and return the answer."""
    return anyio.run(partial(_ask, app, method, path, **arguments))


async def _ask(app: FastAPI, method: str, path: str, **arguments: Any) -> httpx.Response:
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(
            transport=httpx.ASGITransport(app=app), base_url="http://api.test"
        ) as client,
    ):
        return await client.request(method, path, **arguments)
