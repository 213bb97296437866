"""How much the system can take: what a client asks before it sends a million files."""

from collections.abc import Mapping
from datetime import UTC, datetime, time, timedelta

from fastapi import APIRouter
from pydantic import BaseModel, Field

from api.admission import DRAIN_WINDOW_S, Limits, Load
from api.ledger import Ledger, ServicesOfProcess
from api.problems import declared
from db.admission import KeyUse, OpenWork
from db.states import Priority

router = APIRouter(tags=["capacity"])


class LaneView(BaseModel):
    """What is open of one priority: the documents of all tenants that are not final."""

    documents: int
    pages: int = Field(
        description="Of whole documents; guessed from type and size until a document is split."
    )
    pixels: int = Field(description="Likewise.")
    oldest_s: float | None = Field(
        description="How long ago the oldest of them was sent, in seconds; null: there is none."
    )
    max_pages: int = Field(description="At so many, further documents are `503 system_full`.")
    max_pixels: int = Field(description="Likewise.")
    room_pages: int = Field(description="What is left of `max_pages`, at least 0.")
    room_pixels: int = Field(description="What is left of `max_pixels`, at least 0.")
    is_full: bool = Field(description="Whether further documents are refused.")


class DrainView(BaseModel):
    """How fast documents become final."""

    pages_per_s: float = Field(description="Pages of the documents that became final, a second.")
    window_s: float = Field(description="Over so many seconds back.")


class CacheView(BaseModel):
    """How much needed no reading, since its content had been read before."""

    documents_finished: int = Field(description="Documents that became final.")
    documents_cached: int = Field(description="Of them, those that were not read themselves.")
    pages_cached: int = Field(
        description="Pages of the others that were not recognized themselves."
    )
    window_s: float = Field(description="Over so many seconds back.")


class KeyView(BaseModel):
    """What the key that asks may have, and has used; a quota of null is none."""

    max_open_pages: int | None
    open_pages: int | None = Field(description="Counted only where there is a quota of them.")
    max_pages_per_day: int | None
    pages_today: int = Field(
        description="Pages that were sent today (UTC); above the quota when documents had more "
        "pages than was guessed."
    )
    documents_today: int
    day_ends_at: datetime = Field(description="When `pages_today` starts again from 0.")


class CapacityView(BaseModel):
    """How much the system has to do and can take, at most some seconds ago."""

    interactive: LaneView
    bulk: LaneView
    pages_queued: int = Field(
        description="Pages of all open documents that no worker holds. Those that are done count "
        "until their document is."
    )
    pages_in_flight: int = Field(description="Pages of the chunks that workers hold.")
    drain: DrainView
    cache: CacheView
    key: KeyView


@router.get("/v1/capacity", responses=declared("unauthenticated", "database_unavailable"))
def read_capacity(ledger: Ledger, services: ServicesOfProcess) -> CapacityView:
    """Say how much is open, how fast it is done, how much more is taken, and what this key may."""
    load = services.admission.load()
    return capacity_view(load, services.admission.limits, ledger.key_use(), now=datetime.now(UTC))


def capacity_view(
    load: Load, limits: Mapping[Priority, Limits], use: KeyUse, *, now: datetime
) -> CapacityView:
    """Return what the API tells about its load."""
    open_pages = sum(work.pages for work in load.open.values())
    tomorrow = datetime.combine(now.date() + timedelta(days=1), time(), tzinfo=UTC)
    return CapacityView(
        interactive=_lane(load.open[Priority.INTERACTIVE], limits[Priority.INTERACTIVE]),
        bulk=_lane(load.open[Priority.BULK], limits[Priority.BULK]),
        pages_queued=max(open_pages - load.pages_in_flight, 0),
        pages_in_flight=load.pages_in_flight,
        drain=DrainView(pages_per_s=round(load.pages_per_s, 3), window_s=DRAIN_WINDOW_S),
        cache=CacheView(
            documents_finished=load.cache.finished,
            documents_cached=load.cache.served,
            pages_cached=load.cache.served_pages,
            window_s=DRAIN_WINDOW_S,
        ),
        key=KeyView(
            max_open_pages=use.max_open_pages,
            open_pages=use.open_pages,
            max_pages_per_day=use.max_pages_per_day,
            pages_today=use.pages_today,
            documents_today=use.documents_today,
            day_ends_at=tomorrow,
        ),
    )


def _lane(work: OpenWork, limits: Limits) -> LaneView:
    return LaneView(
        documents=work.documents,
        pages=work.pages,
        pixels=work.pixels,
        oldest_s=None if work.oldest_s is None else round(work.oldest_s, 1),
        max_pages=limits.pages,
        max_pixels=limits.pixels,
        room_pages=max(limits.pages - work.pages, 0),
        room_pixels=max(limits.pixels - work.pixels, 0),
        is_full=limits.are_reached_by(work),
    )
