"""What an orchestrator asks: does the process live, and can it serve."""

from fastapi import APIRouter
from pydantic import BaseModel, Field

from api.errors import ApiError
from api.ledger import ServicesOfProcess
from api.problems import declared

router = APIRouter(tags=["health"])


class Liveness(BaseModel):
    """The process answers."""

    status: str = "alive"


class ReadinessView(BaseModel):
    """The servers that the API needs answer."""

    status: str = "ready"
    servers: dict[str, bool] = Field(description="Which of them answered within a second.")


@router.get("/livez")
async def read_liveness() -> Liveness:
    """Say that the process lives; asks nobody else."""
    return Liveness()


@router.get("/readyz", responses=declared("not_serving"))
async def read_readiness(services: ServicesOfProcess) -> ReadinessView:
    """Say whether database, broker and storage answer; the outcome is kept for 2 seconds.

    Raises:
        ApiError: one of them does not.
    """
    servers = await services.readiness.check()
    failing = sorted(name for name, answers in servers.items() if not answers)
    if failing:
        raise ApiError(
            "not_serving",
            detail=f"No answer from: {', '.join(failing)}.",
            extra={"servers": dict(servers)},
        )
    return ReadinessView(servers=dict(servers))
