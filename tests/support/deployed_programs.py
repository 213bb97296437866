"""The programs that manifests, compose file and images start: their command lines and settings."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import typer

from api.intake_settings import IntakeSettings
from api.settings import ApiSettings, read_api_settings
from cli.main import app
from cli.s3_events import load_event_settings
from cli.settings import DatabaseSettings, FlowerSettings, WebhookSettings, load_settings
from tests.support.guides import settings_classes
from workers.settings import (
    FOREIGN_PREFIXES,
    PREFIX,
    CheckedSettings,
    OcrSettings,
    WorkerSettings,
    read_settings,
)


@dataclass(frozen=True)
class Program:
    """What a command reads: ``read`` as it does itself, and every name that it has a use for."""

    read: Callable[[], object]
    classes: tuple[type[CheckedSettings], ...]

    @property
    def names(self) -> frozenset[str]:
        return frozenset().union(*(cls.variable_names() for cls in self.classes))


def _read_for_flower() -> None:
    load_settings(WorkerSettings)
    load_settings(FlowerSettings)


PROGRAMS = {
    "api": Program(read_api_settings, (ApiSettings,)),
    "worker": Program(lambda: load_settings(WorkerSettings), (WorkerSettings,)),
    "reconcile": Program(
        lambda: load_settings(IntakeSettings, foreign_prefixes=FOREIGN_PREFIXES), (IntakeSettings,)
    ),
    "s3-events": Program(load_event_settings, (ApiSettings,)),
    "webhooks": Program(lambda: load_settings(WebhookSettings), (WebhookSettings,)),
    "flower": Program(_read_for_flower, (WorkerSettings, FlowerSettings)),
    "migrate": Program(lambda: load_settings(DatabaseSettings), (DatabaseSettings,)),
    "models": Program(lambda: read_settings(OcrSettings), (OcrSettings,)),
}
# What stands for a secret while the settings are read; each of its form.
SECRET_VALUES = {
    "PAGEFLEET_DATABASE_URL": "postgresql://user:secret@server:5432/pagefleet",
    "PAGEFLEET_REDIS_URL": "redis://:secret@server:6379/0",
}


def known_settings() -> frozenset[str]:
    """Return every setting of the project, from the code."""
    return frozenset().union(*(cls.variable_names() for cls in settings_classes()))


def secret_settings() -> frozenset[str]:
    """Return the settings that hold a password, a key or a token, from the code."""
    return frozenset(
        f"{PREFIX}{name.upper()}"
        for cls in settings_classes()
        for name, field in cls.model_fields.items()
        if "Secret" in str(field.annotation)
    )


def parse_command(arguments: Sequence[str]) -> dict[str, Any]:
    """Return the options of a command line, parsed by the program's own parser.

    Whatever it refuses is raised: a command, an option or a value that does not exist.
    """
    command: Any = typer.main.get_command(app)
    rest = list(arguments)
    context = command.make_context("pagefleet", list(rest))
    while hasattr(command, "resolve_command"):
        name, command, rest = command.resolve_command(context, rest)
        context = command.make_context(name, list(rest), parent=context)
    return dict(context.params)


def read_as(program: str, environment: Mapping[str, str]) -> None:
    """Let a program read its settings out of this environment alone; it refuses what is wrong."""
    with pytest.MonkeyPatch.context() as patched:
        for name in [name for name in os.environ if name.startswith(PREFIX)]:
            patched.delenv(name)
        for name, value in environment.items():
            patched.setenv(name, value)
        PROGRAMS[program].read()


def secret_value(name: str) -> str:
    return SECRET_VALUES.get(name, "a-secret-of-24-characters")
