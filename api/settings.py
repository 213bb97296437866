"""Every setting of the HTTP API, on top of those of the workers that it dispatches to."""

from typing import Self

from pydantic import Field, model_validator

import workers.settings
from api.direct_upload_settings import DirectUploadSettings
from api.intake_settings import IntakeSettings
from api.s3_event_settings import S3EventSettings
from workers.settings import WebhookTargetSettings, read_settings

# Names that other programs of the project read.
FOREIGN_PREFIXES = tuple(
    prefix
    for prefix in workers.settings.FOREIGN_PREFIXES
    if prefix not in {"PAGEFLEET_API_", "PAGEFLEET_S3_EVENTS_"}
)


class ApiSettings(DirectUploadSettings, S3EventSettings, IntakeSettings, WebhookTargetSettings):
    """What the API needs: where it listens, what it takes, and how much it does at once."""

    api_host: str = Field(
        default="127.0.0.1", description="address to listen on; put a proxy with TLS before it"
    )
    api_port: int = Field(
        default=8000, ge=0, le=65_535, description="port to listen on; 0: any free one"
    )
    api_max_upload_bytes: int = Field(
        default=2 * 2**30, ge=1, description="largest upload; at most `PAGEFLEET_MAX_FILE_BYTES`"
    )
    api_key_cache_s: float = Field(
        default=10,
        ge=0,
        le=30,
        description="for how long a key is believed without asking the database",
    )
    api_database_pool_size: int = Field(
        default=4, ge=1, le=64, description="connections kept; up to three times as many under load"
    )
    api_storage_threads: int = Field(
        default=16, ge=1, le=512, description="calls to storage at once"
    )
    api_max_uploads: int = Field(
        default=32,
        ge=1,
        le=10_000,
        description="uploads at the same time; each takes up to about 35 MB of memory",
    )
    api_upload_idle_s: float = Field(
        default=60, gt=0, description="for how long an upload may send nothing"
    )
    # 32 uploads at once over a line of 1 Mbit/s have four times as much each.
    api_upload_min_bytes_per_s: float = Field(
        default=1_000, ge=0, description="an upload that is slower is refused; 0: no least rate"
    )
    api_database_timeout_s: float = Field(
        default=10, gt=0, le=60, description="for the database to answer one statement"
    )
    api_broker_timeout_s: float = Field(
        default=2,
        gt=0,
        le=30,
        description="for the broker to take a message; past it `reconcile` sends it",
    )
    api_answer_timeout_s: float = Field(
        default=20,
        gt=0,
        description="for a request to be answered, receiving an upload and sending a result not "
        "counted",
    )
    api_head_timeout_s: float = Field(
        default=10, gt=0, description="for the head of a request to arrive once a client connected"
    )
    api_max_wait_s: int = Field(
        default=60, ge=0, le=600, description="longest `Prefer: wait` of an upload; 0: none waits"
    )
    api_max_streams: int = Field(
        default=1_000, ge=1, description="streams of events and waiting uploads at the same time"
    )
    api_max_streams_per_key: int = Field(
        default=20, ge=1, description="the same of one key; a further stream is refused"
    )
    api_shutdown_s: int = Field(
        default=30, ge=1, description="for how long running requests may finish after a signal"
    )

    @model_validator(mode="after")
    def _check_upload_limit(self) -> Self:
        if self.api_max_upload_bytes > self.max_file_bytes:
            raise ValueError(
                "PAGEFLEET_API_MAX_UPLOAD_BYTES must be at most PAGEFLEET_MAX_FILE_BYTES, else "
                "a file is taken that no worker opens"
            )
        return self


def read_api_settings() -> ApiSettings:
    """Read and check the environment.

    Raises:
        SettingsError: a value is missing or wrong, or a name is unknown; all are listed.
    """
    return read_settings(ApiSettings, foreign_prefixes=FOREIGN_PREFIXES)
