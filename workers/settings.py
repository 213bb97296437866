"""Every setting of the workers, read from the environment once and checked together.

Names are ``PAGEFLEET_<AREA>_<WHAT>_<UNIT>``. Whoever needs a value takes it as a plain argument;
only composition roots (``workers.runtime``, ``cli``, ``api``) read settings.
"""

import os
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import Field, SecretStr, ValidationError, model_validator
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
    "PAGEFLEET_STACK_",
    "PAGEFLEET_TEST_",
)


class SettingsError(Exception):
    """The environment is wrong; the message lists every problem, one a line."""


def home_dir() -> Path:
    """Return the folder of models and embedded data.

    ``PAGEFLEET_HOME``; else ``.pagefleet`` in a source checkout, so that a checkout holds all
    that it made; else the user's data folder.
    """
    given = os.environ.get("PAGEFLEET_HOME")
    if given:
        return Path(given).absolute()
    root = Path(__file__).absolute().parent.parent
    if (root / "pyproject.toml").exists():
        return root / ".pagefleet"
    return Path.home() / ".local" / "share" / "pagefleet"


def models_dir() -> Path:
    """Return the folder of model files: ``PAGEFLEET_MODELS_DIR``, else ``models`` in the home."""
    given = os.environ.get("PAGEFLEET_MODELS_DIR")
    return Path(given).absolute() if given else home_dir() / "models"


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


class OcrSettings(CheckedSettings):
    """What the core needs; enough for ``pagefleet ocr``, which has no server."""

    home: Path = Field(default_factory=home_dir)
    models_dir: Path = Field(default_factory=models_dir)
    models_bundle: str = "ppocrv6-small"
    device: Literal["auto", "cpu", "cuda"] = "auto"
    engine: Literal["auto", "onnxruntime", "openvino"] = "auto"
    rec_chunk_size: int = Field(default=256, ge=1, le=256)
    rec_minibatch_px_columns: int = Field(default=262_144, ge=3_200)
    max_crops_per_page: int = Field(default=2_000, ge=1, le=20_000)
    ocr_threads: int = Field(
        default=0,
        ge=0,
        description="cores of one slot; 0: all for `pagefleet ocr`, a slot's share for a worker",
    )
    crop_cache_count: int = Field(default=20_000, ge=0)
    inference_timeout_s: float = Field(default=120, gt=0)
    gpu_memory_bytes: int = Field(
        default=0, ge=0, description="of one slot; 0: its share of nine tenths of the card"
    )
    render_max_pixels: int = Field(default=60_000_000, ge=1_000_000)
    render_page_timeout_s: float = Field(default=30, gt=0)
    render_open_timeout_s: float = Field(default=30, gt=0)
    render_memory_bytes: int = Field(default=2 * 2**30, ge=2**29)
    render_pages_per_child: int = Field(default=500, ge=1)
    max_file_bytes: int = Field(default=2 * 2**30, ge=1)
    max_pages: int = Field(default=10_000, ge=1)
    log_level: Literal["debug", "info", "warning", "error"] = "info"


class WorkerSettings(OcrSettings):
    """What a worker, the sweep and the API's dispatch need."""

    database_url: SecretStr
    redis_url: SecretStr
    redis_key_prefix: str = "pagefleet:"
    redis_visibility_timeout_s: int = Field(default=3_600, ge=1)
    s3_endpoint_url: str | None = None
    s3_bucket: str
    s3_region: str = "us-east-1"
    s3_access_key_id: str | None = None
    s3_secret_access_key: SecretStr | None = None
    s3_checksums: Literal["when_required", "when_supported"] = "when_required"

    worker_queues: Annotated[frozenset[str], NoDecode] = frozenset()
    slots: int = Field(default=0, ge=0, description="0: one per GPU, or one per CPU core")
    chunk_pages: int = Field(default=0, ge=0, le=1_000, description="0: 16 on a GPU, 4 on a CPU")
    task_hard_limit_s: int = Field(default=900, ge=1)
    lease_s: float = Field(default=60, gt=0)
    max_attempts: int = Field(default=4, ge=1)
    dispatch_grace_s: float = Field(default=30, gt=0)
    retry_delay_s: float = Field(default=10, gt=0)
    sweep_interval_s: float = Field(default=5, gt=0)
    sweep_limit: int = Field(default=1_000, ge=1)
    soft_shutdown_s: float = Field(default=60, ge=0)

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
