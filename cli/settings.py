"""The one place where the command line reads its environment."""

import os
import re
from typing import TypeVar

from pydantic import Field, SecretStr, field_validator

from cli.errors import EXIT_USAGE, CommandError
from cli.stack.state import read_stack
from workers.settings import (
    FOREIGN_PREFIXES,
    CheckedSettings,
    DatabaseUrl,
    HeartbeatSettings,
    LogSettings,
    MetricsSettings,
    SettingsError,
    WebhookTargetSettings,
    home_dir,
    read_settings,
)

# What a header carries; whether it is a key is the API's to say.
_KEY_CHARACTERS = re.compile(r"[!-~]+")

S = TypeVar("S", bound=CheckedSettings)


class ClientSettings(CheckedSettings):
    """What ``status`` and ``ocr`` take when no option says so."""

    client_api_url: str | None = Field(
        default=None,
        description="address of the API for `pagefleet status`; none: the running stack's",
    )
    client_api_key: SecretStr | None = Field(
        default=None, description="key for that API; none: the running stack's"
    )
    client_file_password: SecretStr | None = Field(
        default=None, description="password of encrypted files for `pagefleet ocr`"
    )


class DatabaseSettings(CheckedSettings):
    """What ``migrate`` and ``keys`` need: one server of all."""

    database_url: DatabaseUrl = Field(
        description="Postgres, as `postgresql://user:password@host:port/database`"
    )


class WebhookSettings(
    DatabaseSettings, HeartbeatSettings, LogSettings, MetricsSettings, WebhookTargetSettings
):
    """What ``webhooks`` needs: of the servers the database alone."""

    webhook_senders: int = Field(
        default=32,
        ge=1,
        le=512,
        description="webhooks that are sent at the same time, half of them to one tenant at most",
    )
    webhook_timeout_s: float = Field(
        default=15, gt=0, le=60, description="for an endpoint to answer, connecting included"
    )
    webhook_interval_s: float = Field(
        default=1, gt=0, description="between two looks for webhooks while none is due"
    )
    webhook_disable_after_days: float = Field(
        default=5, gt=0, description="after which an endpoint that only fails is disabled"
    )
    webhook_keep_days: float = Field(
        default=7, ge=1, description="for which deliveries can be listed and replayed"
    )


class FlowerSettings(CheckedSettings):
    """How Flower listens and who may read it."""

    flower_host: str = Field(default="127.0.0.1", description="address that Flower listens on")
    flower_port: int = Field(
        default=5555, ge=1, le=65_535, description="port that Flower listens on"
    )
    flower_user: str = Field(
        default="pagefleet", pattern=r"^[^:,]+$", description="who may look; no colon and no comma"
    )
    flower_password: SecretStr = Field(min_length=8, description="8 characters or more, no comma")

    @field_validator("flower_password")
    @classmethod
    def _check_comma(cls, value: SecretStr) -> SecretStr:
        if "," in value.get_secret_value():
            raise ValueError("must hold no comma: Flower would read two accounts")
        return value


def load_settings(cls: type[S], *, foreign_prefixes: tuple[str, ...] | None = None) -> S:
    """Read settings for a command.

    Args:
        cls: of which.
        foreign_prefixes: of names that other programs read, and of which ``cls`` may read some
            too; None: those of areas of which it reads nothing.

    Raises:
        CommandError: a value is missing or wrong, or a ``PAGEFLEET_`` name is unknown; all
            problems are listed.
    """
    try:
        return read_settings(
            cls, foreign_prefixes=_foreign_to(cls) if foreign_prefixes is None else foreign_prefixes
        )
    except SettingsError as error:
        raise CommandError(
            f"the settings are wrong:\n{error}",
            "`pagefleet up` runs everything locally without any; see docs/cli.md for the others.",
            exit_code=EXIT_USAGE,
        ) from error


def is_worker_configured() -> bool:
    """Tell whether the environment names servers at all."""
    return any(
        f"PAGEFLEET_{name}" in os.environ for name in ("DATABASE_URL", "REDIS_URL", "S3_BUCKET")
    )


def adopt_running_stack() -> None:
    """Let this process use the servers of a running stack, unless the settings name others."""
    if is_worker_configured():
        return
    running = read_stack(home_dir())
    if running is not None:
        os.environ.update(running.environment())


def own_environment() -> dict[str, str]:
    """Return this process's environment, for programs that are to have the same settings."""
    return dict(os.environ)


def become(
    command: list[str], *, environment: dict[str, str], dropped_prefix: str | None = None
) -> None:
    """Replace this process by ``command``, so that signals reach it; never returns.

    Args:
        command: an absolute program and its arguments.
        environment: what is added to the environment of this process.
        dropped_prefix: how variables begin that ``command`` is not to see of it; None: all are
            handed on.
    """
    inherited = {
        name: value
        for name, value in os.environ.items()
        if dropped_prefix is None or not name.startswith(dropped_prefix)
    }
    os.execve(command[0], command, {**inherited, **environment})  # noqa: S606 - no shell wanted


def find_api(api_url: str | None, api_key: str | None) -> tuple[str | None, str | None]:
    """Return address and key of the API: as given, else of the settings, else of a running stack.

    A stack's key goes to that stack only: with another address it is not looked at.

    Raises:
        CommandError: the settings are wrong, or the key is none.
    """
    settings = load_settings(ClientSettings)
    secret = settings.client_api_key
    key = api_key or (secret.get_secret_value() if secret else None)
    if key is not None and not _KEY_CHARACTERS.fullmatch(key):
        raise CommandError(
            "the API key holds a space or another character that no key has",
            "Copy it again as `pagefleet keys create` printed it.",
            exit_code=EXIT_USAGE,
        )
    address = api_url or settings.client_api_url
    if address is not None:
        return address, key
    running = read_stack(home_dir())
    if running is None:
        return None, key
    return running.api_url, key or running.api_key


def name_of_key(api_key: str | None) -> str:
    """Return what people call the key that ``find_api`` returns."""
    if api_key:
        return "that was given"
    is_set = load_settings(ClientSettings).client_api_key is not None
    return "in PAGEFLEET_CLIENT_API_KEY" if is_set else "of the running stack"


def file_password() -> str | None:
    """Return the password of encrypted files, when the environment has one."""
    secret = load_settings(ClientSettings).client_file_password
    return secret.get_secret_value() if secret else None


def _foreign_to(cls: type[CheckedSettings]) -> tuple[str, ...]:
    """Return the areas that ``cls`` reads nothing of; in its own, unknown names are errors."""
    return tuple(
        prefix
        for prefix in FOREIGN_PREFIXES
        if not any(name.startswith(prefix) for name in cls.variable_names())
    )
