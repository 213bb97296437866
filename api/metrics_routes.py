"""Metrics at the API's own address, where they have no port of their own."""

from fastapi import APIRouter, Request, Response
from prometheus_client.exposition import choose_encoder

from api.errors import ApiError
from api.ledger import ServicesOfProcess
from api.problems import declared

router = APIRouter(tags=["health"])


@router.get(
    "/metrics",
    response_class=Response,
    responses={
        200: {
            "content": {"text/plain": {}, "application/openmetrics-text": {}},
            "description": "What Prometheus reads.",
        },
        **declared("not_found"),
    },
)
def read_metrics(request: Request, services: ServicesOfProcess) -> Response:
    """Show what this process counts, and what the whole system has to do; see docs/metrics.md.

    It asks for no key, and names no tenant. There is no such address where
    `PAGEFLEET_METRICS_PORT` gives the metrics a port of their own.

    Raises:
        ApiError: they have one.
    """
    if services.settings.metrics_port:
        raise ApiError("not_found")
    encode, media_type = choose_encoder(request.headers.get("Accept", ""))
    return Response(encode(services.metrics), media_type=media_type)
