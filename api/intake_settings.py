"""Whence documents may come, and how many may be open: what the API and ``reconcile`` share."""

from typing import Self

from pydantic import Field, model_validator

from api.place_settings import AllowedSources
from storage import keys
from workers.settings import WorkerSettings


class IntakeSettings(WorkerSettings):
    """What whoever makes documents of a tenant's objects needs."""

    api_sources: AllowedSources = Field(
        default=(),
        description="places in buckets from which documents may come, by `source` or into a batch, "
        "for `reconcile` too: a JSON list of `bucket`, `prefix` and `tenants` (docs/api.md); none: "
        "from nowhere",
    )
    api_max_manifest_bytes: int = Field(
        default=2**30, ge=1, description="largest manifest in a bucket, for `reconcile` too"
    )
    # Somebody waits for these: minutes of work of one machine, seconds of a fleet.
    api_max_open_pages_interactive: int = Field(
        default=2_000, ge=1, description="open interactive pages at which further ones are refused"
    )
    # Twice an A4 page at 200 dpi for each.
    api_max_open_pixels_interactive: int = Field(
        default=16_000_000_000, ge=1, description="the same in pixels"
    )
    # A million waiting pages are an archive as usual; rows cost what limits them (docs/api.md).
    api_max_open_pages_bulk: int = Field(
        default=10_000_000, ge=1, description="open bulk pages at which further ones are refused"
    )
    api_max_open_pixels_bulk: int = Field(
        default=80_000_000_000_000, ge=1, description="the same in pixels"
    )
    api_capacity_cache_s: float = Field(
        default=2,
        ge=0,
        le=60,
        description="for how long a count of open work is used, and at least 20 times as long as "
        "counting took",
    )

    @model_validator(mode="after")
    def _check_sources(self) -> Self:
        problems = [
            f"PAGEFLEET_API_SOURCES: {place.bucket}/{place.prefix} overlaps with {keys.ROOT} of "
            "Pagefleet's own bucket, where the documents of all tenants lie; allow a prefix "
            "beside it, or another bucket"
            for place in self.api_sources
            if place.overlaps(self.s3_bucket, keys.ROOT)
        ]
        if problems:
            raise ValueError("; ".join(problems))
        return self
