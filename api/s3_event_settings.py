"""The settings of storage events: which places are watched, and how the events arrive."""

from itertools import combinations
from typing import Self

from pydantic import Field, SecretStr, model_validator

from api.place_settings import WatchedPlaces
from storage import keys
from workers.settings import WorkerSettings

HANDLINGS_PER_VISIBILITY = 6


class S3EventSettings(WorkerSettings):
    """What ``s3-events``, the event endpoint and ``reconcile --prefix`` need beside the servers."""

    s3_events_watched: WatchedPlaces = Field(
        default=(),
        description="places whose new objects become documents: a JSON list of `bucket`, `prefix`, "
        "`tenant`, `batch_id`, `priority` and `options` (docs/s3-events.md)",
    )
    s3_events_token: SecretStr | None = Field(
        default=None,
        min_length=16,
        description="what senders of `POST /v1/events/s3` show as bearer token; none: there is no "
        "such address",
    )
    s3_events_queue_url: str | None = Field(
        default=None, description="the SQS queue that `pagefleet s3-events` reads"
    )
    s3_events_queue_endpoint_url: str | None = Field(
        default=None, description="address of the queue's service; none: AWS"
    )
    s3_events_visibility_s: int = Field(
        default=120,
        ge=30,
        le=43_200,
        description="for how long a received message is hidden from others; a sixth of it is given "
        "to handling what one request received",
    )
    s3_events_wait_s: int = Field(
        default=20, ge=0, le=20, description="for how long one request waits for messages"
    )

    @model_validator(mode="after")
    def _check_places(self) -> Self:
        problems = [
            f"PAGEFLEET_S3_EVENTS_WATCHED: {place.bucket}/{place.prefix} overlaps with "
            f"{keys.ROOT} of Pagefleet's own bucket: its results would become documents; watch a "
            "prefix beside it, or another bucket"
            for place in self.s3_events_watched
            if place.overlaps(self.s3_bucket, keys.ROOT)
        ]
        problems += [
            f"PAGEFLEET_S3_EVENTS_WATCHED: {one.bucket}/{one.prefix} is there twice"
            for one, other in combinations(self.s3_events_watched, 2)
            if (one.bucket, one.prefix) == (other.bucket, other.prefix)
        ]
        if problems:
            raise ValueError("; ".join(problems))
        return self
