"""Every setting of the workers, read from the environment once and checked together.

Names are ``PAGEFLEET_<AREA>_<WHAT>_<UNIT>``. Whoever needs a value takes it as a plain argument;
only composition roots (``workers.runtime``, ``cli``, ``api``) read settings.
"""

import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AfterValidator, Field, SecretStr, ValidationError, model_validator
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

PREFIX = "PAGEFLEET_"
# Names that other programs of the project read; here they are known, and not ours.
FOREIGN_PREFIXES = (
    "PAGEFLEET_API_",
    "PAGEFLEET_CLIENT_",
    "PAGEFLEET_FLOWER_",
    "PAGEFLEET_WEBHOOK_",
    "PAGEFLEET_S3_EVENTS_",
)


# An address that SQLAlchemy or psycopg cannot parse would be in their message, with its password.
_DATABASE_URL = re.compile(
    r"(postgres|postgresql|postgresql\+psycopg)://([^@]*@)?"
    r"(\[[^/\]]*\]|[^/:?]*)(:[0-9]+)?(/[^?]*)?(\?.*)?"
)


def _check_database_url(value: SecretStr) -> SecretStr:
    if not _DATABASE_URL.fullmatch(value.get_secret_value()):
        raise ValueError(
            "must be an address of Postgres, as postgresql://user:password@host:port/database; "
            "what has a meaning in it, as @ and /, is written as %40 and %2F in a password"
        )
    return value


DatabaseUrl = Annotated[SecretStr, AfterValidator(_check_database_url)]


class SettingsError(Exception):
    """The environment is wrong; the message lists every problem, one a line."""


def project_environment() -> dict[str, str]:
    """Return the environment of this process, for the project's own programs that it starts."""
    return dict(os.environ)


class CheckedSettings(BaseSettings):
    """Settings that refuse unknown ``PAGEFLEET_`` names: a misspelt one would do nothing."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, frozen=True, extra="ignore", env_ignore_empty=True
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        del settings_cls, dotenv_settings, file_secret_settings  # one source: the environment
        return init_settings, env_settings

    @classmethod
    def variable_names(cls) -> frozenset[str]:
        """Return the environment variables that this class reads."""
        return frozenset(f"{PREFIX}{name.upper()}" for name in cls.model_fields)


def _default_home() -> Path:
    """Return ``.pagefleet`` in a source checkout, so that it holds all that it made; else XDG's."""
    root = Path(__file__).absolute().parent.parent
    if (root / "pyproject.toml").exists():
        return root / ".pagefleet"
    return Path.home() / ".local" / "share" / "pagefleet"


# Programs of one stack run in different folders, where a relative path would mean another place.
AbsolutePath = Annotated[Path, AfterValidator(Path.absolute)]


class FolderSettings(CheckedSettings):
    """Where everything local lies; absolute, whatever the environment says."""

    home: AbsolutePath = Field(
        default_factory=_default_home,
        description="everything local: models, data and logs of the embedded stack; "
        "default: `.pagefleet` in a source checkout, else `~/.local/share/pagefleet`",
    )
    models_dir: AbsolutePath = Field(
        default_factory=lambda fields: fields["home"] / "models",
        description="folder of the model files; by default `models` in the home",
    )


def home_dir() -> Path:
    """Return the folder of models and embedded data, when nothing else of the settings matters."""
    return FolderSettings().home


def models_dir() -> Path:
    """Return the folder of model files, when nothing else of the settings matters."""
    return FolderSettings().models_dir


class LogSettings(CheckedSettings):
    """What a program writes into its log."""

    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="what is logged, and all above it"
    )


class WebhookTargetSettings(CheckedSettings):
    """Where webhooks may go; the API looks at it, and whoever sends them."""

    webhook_allow_loopback: bool = Field(
        default=False,
        description="whether webhooks may go to this machine itself, over `http` too; for trying "
        "them out",
    )


class OcrSettings(FolderSettings, LogSettings):
    """What the core needs; enough for ``pagefleet ocr``, which has no server."""

    profile: str = Field(
        default="balanced",
        description="`balanced`, `fast`, or a folder with models of your own (docs/models.md)",
    )
    device: Literal["auto", "cpu", "cuda"] = Field(
        default="auto",
        description="`auto` takes a GPU where driver and runtime have one, `cuda` requires it",
    )
    engine: Literal["auto", "onnxruntime", "openvino"] = Field(
        default="auto",
        description="`auto` takes OpenVINO where it is installed and the processor multiplies "
        "bfloat16, else onnxruntime",
    )
    rec_chunk_size: int = Field(
        default=256,
        ge=1,
        le=256,
        description="most text lines recognized together; never more than 256",
    )
    rec_minibatch_px_columns: int = Field(
        default=262_144,
        ge=3_200,
        description="most pixel columns of one minibatch; bounds memory where text lines are long",
    )
    max_crops_per_page: int = Field(
        default=2_000,
        ge=1,
        le=2_000,
        description="most text lines of a page that are recognized; more make the page `truncated`",
    )
    ocr_threads: int = Field(
        default=0,
        ge=0,
        description="CPU cores of one slot; 0: all for `pagefleet ocr`, its share for a worker's",
    )
    crop_cache_count: int = Field(
        default=20_000,
        ge=0,
        description="text lines whose reading is kept for when they come again, 1.3 KB each",
    )
    inference_timeout_s: float = Field(
        default=120, gt=0, description="for one run of a model; past it the process ends itself"
    )
    gpu_memory_bytes: int = Field(
        default=0, ge=0, description="of one slot; 0: its share of nine tenths of the card"
    )
    render_max_pixels: int = Field(
        default=60_000_000, ge=1_000_000, description="largest page image; a larger page is refused"
    )
    render_page_timeout_s: float = Field(default=30, gt=0, description="for rendering one page")
    render_open_timeout_s: float = Field(default=30, gt=0, description="for opening a document")
    render_memory_bytes: int = Field(
        default=2 * 2**30, ge=2**29, description="address space of the process that opens documents"
    )
    render_pages_per_child: int = Field(
        default=1_000, ge=1, description="pages and documents after which that process is replaced"
    )
    max_file_bytes: int = Field(default=2 * 2**30, ge=1, description="largest file that is opened")
    max_pages: int = Field(default=10_000, ge=1, description="most pages of a document")


class HeartbeatSettings(FolderSettings):
    """Where a process says that it lives, and for how long that is believed."""

    heartbeat_file: AbsolutePath | None = Field(
        default=None,
        description="where `worker`, `reconcile` and `webhooks` say that they live; none: a file "
        "of its own for each in `heartbeats` in the home",
    )
    heartbeat_limit_s: float = Field(
        default=120,
        gt=0,
        description="age from which `pagefleet alive` calls a heartbeat dead; a silent broker "
        "holds a worker up for a minute",
    )


class MetricsSettings(CheckedSettings):
    """Where a program shows what it counts."""

    metrics_host: str = Field(
        default="127.0.0.1",
        description="address at which metrics are shown; they ask for no key, so leave it private",
    )
    metrics_port: int = Field(
        default=0,
        ge=0,
        le=65_535,
        description="port at which this program shows its metrics (docs/metrics.md), one of its "
        "own for each program of a machine; 0: nowhere, and the API at `/metrics` of its own "
        "address",
    )


class WorkerSettings(OcrSettings, HeartbeatSettings, MetricsSettings):
    """What a worker, the sweep and the API's dispatch need."""

    database_url: DatabaseUrl = Field(
        description="Postgres, as `postgresql://user:password@host:port/database`"
    )
    redis_url: SecretStr = Field(
        description="message broker and task results, as `redis://:password@host:port/0`"
    )
    redis_key_prefix: str = Field(
        default="pagefleet:", description="before every key, for a Redis that others use too"
    )
    redis_visibility_timeout_s: int = Field(
        default=3_600,
        ge=1,
        description="after which an unanswered message is delivered again; one value for the fleet",
    )
    s3_endpoint_url: str | None = Field(
        default=None, description="address of the object storage; none: AWS"
    )
    s3_bucket: str = Field(description="bucket for sources and results")
    s3_region: str = Field(default="us-east-1", description="its region")
    s3_access_key_id: str | None = Field(
        default=None, description="with the secret key; none: the machine's own role"
    )
    s3_secret_access_key: SecretStr | None = Field(
        default=None, description="with the access key id"
    )
    s3_checksums: Literal["when_required", "when_supported"] = Field(
        default="when_required",
        description="when uploads carry checksums; some S3 servers refuse the newer ones",
    )

    worker_queues: Annotated[frozenset[str], NoDecode] = Field(
        default=frozenset(),
        description="set by `pagefleet worker --queues` for its pool; nothing to set by hand",
    )
    slots: int = Field(
        default=0,
        ge=0,
        description="tasks that a worker runs at a time; 0: one per GPU, or one per CPU core",
    )
    chunk_pages: int = Field(
        default=0,
        ge=0,
        le=1_000,
        description="pages of one recognition task; 0: 16 on a GPU, 4 on a CPU",
    )
    task_hard_limit_s: int = Field(
        default=900,
        ge=1,
        description="after which a task is killed; at most half the visibility timeout",
    )
    lease_s: float = Field(
        default=60,
        gt=0,
        description="for how long a worker owns a chunk without saying that it lives",
    )
    max_attempts: int = Field(
        default=4,
        ge=1,
        description="tries of a document's step, a chunk, and then each of its pages alone",
    )
    document_cache: bool = Field(
        default=True,
        description="whether a document is served from an earlier one of its tenant, of the same "
        "content, options and models",
    )
    page_cache: bool = Field(
        default=True,
        description="whether a page that has to be recognized is served from an earlier one of its "
        "tenant, of the same picture and models",
    )
    dispatch_grace_s: float = Field(
        default=30, gt=0, description="after which work whose message is not taken up is sent again"
    )
    retry_delay_s: float = Field(
        default=10, gt=0, description="how long work that was put back rests"
    )
    dispatch_queue_limit: int = Field(
        default=256,
        ge=8,
        description="most messages that wait in a queue, 4 for each of 64 slots; the rest waits "
        "in Postgres",
    )
    dispatch_interval_s: float = Field(
        default=0.5, gt=0, description="between two rounds of `pagefleet reconcile` with work left"
    )
    sweep_interval_s: float = Field(
        default=5, gt=0, description="between two rounds of `pagefleet reconcile` without any"
    )
    sweep_limit: int = Field(
        default=1_000, ge=1, description="most rows of one kind that one round gives up"
    )
    slot_host_memory_bytes: int = Field(
        default=0,
        ge=0,
        description="resident memory of a slot and its render child above which both are replaced "
        "after the task; 0: no limit",
    )
    stall_timeout_s: float = Field(
        default=120,
        gt=0,
        description="after which a worker that has room and takes nothing from a queue that is "
        "not empty ends itself",
    )
    soft_shutdown_s: float = Field(
        default=60,
        ge=0,
        description="for running tasks to end after SIGTERM; the rest goes back to the queue",
    )

    @model_validator(mode="before")
    @classmethod
    def _split_queues(cls, values: dict[str, Any]) -> dict[str, Any]:
        queues = values.get("worker_queues")
        if isinstance(queues, str):
            values["worker_queues"] = frozenset(filter(None, queues.split(",")))
        return values

    @model_validator(mode="after")
    def _check_limits_together(self) -> Self:
        problems = []
        if self.task_hard_limit_s * 2 > self.redis_visibility_timeout_s:
            problems.append(
                "PAGEFLEET_TASK_HARD_LIMIT_S must be at most half of "
                "PAGEFLEET_REDIS_VISIBILITY_TIMEOUT_S, else a running task is delivered again"
            )
        if (self.s3_access_key_id is None) != (self.s3_secret_access_key is None):
            problems.append(
                "PAGEFLEET_S3_ACCESS_KEY_ID and PAGEFLEET_S3_SECRET_ACCESS_KEY go together; "
                "leave out both to use the machine's own role"
            )
        if problems:
            raise ValueError("; ".join(problems))
        return self


S = TypeVar("S", bound=CheckedSettings)


def read_settings(cls: type[S], *, foreign_prefixes: tuple[str, ...] = FOREIGN_PREFIXES) -> S:
    """Read and check the environment.

    Raises:
        SettingsError: a value is missing or wrong, or a ``PAGEFLEET_`` name is unknown; all
            problems are listed.
    """
    known = cls.variable_names() | WorkerSettings.variable_names()
    problems = [
        f"{name} is not a setting of Pagefleet"
        for name in sorted(os.environ)
        if name.startswith(PREFIX) and name not in known and not name.startswith(foreign_prefixes)
    ]
    try:
        settings = cls()
    except ValidationError as error:
        # Only place and reason are shown, never the value: it may be a password.
        problems += [
            ": ".join(filter(None, [_variable(each["loc"]), each["msg"]]))
            for each in error.errors(include_input=False, include_url=False)
        ]
    if problems:
        raise SettingsError("\n".join(problems))
    return settings


def _variable(location: tuple[int | str, ...]) -> str:
    return f"{PREFIX}{location[0]}".upper() if location else ""
