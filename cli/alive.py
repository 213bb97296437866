"""``pagefleet alive``: whether a worker or the sweep lives, for probes.

It imports little, because a probe runs it every few seconds; ``cli.__main__`` runs it alone.
"""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.errors import EXIT_FAILED, EXIT_USAGE, CommandError

if TYPE_CHECKING:
    from workers.heartbeat import Sign
    from workers.settings import HeartbeatSettings


def alive(
    *,
    name: Annotated[
        str | None,
        typer.Argument(
            help="A worker by its --name, else its queues, as 'recognize' or 'split+assemble'; or"
            " 'reconcile' or 'webhooks'. Default: all of this home."
            " PAGEFLEET_HEARTBEAT_FILE, where set, names the file instead.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Tell whether a worker, reconcile or webhooks of this machine lives: exit code 0, else 1.

    Each says so every few seconds, in a file. One that ended in order left none.
    """
    settings = _settings()
    signs = _signs(settings, name)
    limit_s = settings.heartbeat_limit_s
    for sign in signs:
        typer.echo(_line(sign, limit_s, as_json=as_json), err=not as_json)
    if not signs:
        missing = name or "any process"
        none = {"name": name, "alive": False, "age_s": None, "pid": None}
        typer.echo(
            json.dumps(none)
            if as_json
            else f"{missing}: no heartbeat; it was not started, or has ended",
            err=not as_json,
        )
    if not signs or any(sign.age_s > limit_s for sign in signs):
        raise typer.Exit(EXIT_FAILED)


def _settings() -> "HeartbeatSettings":
    # Not through cli.settings, which knows the embedded stack, and so imports boto3.
    from workers.settings import HeartbeatSettings, SettingsError, read_settings

    try:
        return read_settings(HeartbeatSettings)
    except SettingsError as error:
        raise CommandError(
            f"the settings are wrong:\n{error}",
            "docs/settings.md lists all.",
            exit_code=EXIT_USAGE,
        ) from error


def _signs(settings: "HeartbeatSettings", name: str | None) -> list["Sign"]:
    from workers import heartbeat

    if name is None and settings.heartbeat_file is None:
        return heartbeat.read_all(settings.home)
    file: Path = settings.heartbeat_file or heartbeat.default_file(settings.home, name or "")
    sign = heartbeat.read(file)
    return [] if sign is None else [sign]


def _line(sign: "Sign", limit_s: float, *, as_json: bool) -> str:
    is_alive = sign.age_s <= limit_s
    if as_json:
        return json.dumps({
            "name": sign.name,
            "alive": is_alive,
            "age_s": round(sign.age_s, 1),
            "pid": sign.pid,
        })
    said = f"{sign.name}: last sign of life {sign.age_s:.0f} s ago"
    return said if is_alive else f"{said}, more than {limit_s:g} s: it hangs or was killed"


def run() -> None:
    """Run this command alone."""
    program = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
    program.command()(alive)
    try:
        program(prog_name="pagefleet alive")
    except CommandError as error:
        from cli.console import report_error

        report_error(error)
        sys.exit(error.exit_code)
