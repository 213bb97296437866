"""``pagefleet flower``: the fleet in a browser, behind a password and read-only."""

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from cli.settings import FlowerSettings

# What it keeps in memory; older tasks are in Postgres.
_MAX_TASKS = 10_000
_FORGET_WORKERS_S = 600
# Flower's own variables: a service of Kubernetes that is called flower brings FLOWER_PORT with an
# address in it, at which Flower dies, and others would open doors that are closed here.
_FOREIGN_VARIABLES = "FLOWER_"


def flower(
    *,
    host: Annotated[
        str | None, typer.Option(help="Address to listen on. Default: PAGEFLEET_FLOWER_HOST.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="Port. Default: PAGEFLEET_FLOWER_PORT, else 5555."),
    ] = None,
    url_prefix: Annotated[
        str, typer.Option(help="Path under which a proxy serves it, such as 'flower'.")
    ] = "",
) -> None:
    """Show workers and tasks on a web page, read-only.

    User and password are PAGEFLEET_FLOWER_USER and PAGEFLEET_FLOWER_PASSWORD.
    """
    from cli.settings import FlowerSettings, become, load_settings
    from workers.settings import WorkerSettings

    load_settings(WorkerSettings)  # Flower reads them too, and would die with a traceback
    settings = load_settings(FlowerSettings)
    become(
        flower_command(
            host=host or settings.flower_host,
            port=port or settings.flower_port,
            url_prefix=url_prefix,
        ),
        environment=flower_environment(settings),
        dropped_prefix=_FOREIGN_VARIABLES,
    )


def flower_command(*, host: str, port: int, url_prefix: str = "") -> list[str]:
    """Return the command line of Flower; the password is not on it, where ``ps`` shows it."""
    return [
        *(sys.executable, "-m", "cli.flower_process", "-A", "workers.app", "flower"),
        # A flowerconfig.py of the current folder would be run, and could name another password.
        f"--conf={os.devnull}",
        f"--address={host}",
        f"--port={port}",
        *([f"--url_prefix={url_prefix}"] if url_prefix else []),
        "--read_only=true",  # nobody stops a worker or a task from a browser
        "--persistent=false",  # Postgres is the truth; its own file would only grow
        f"--max_tasks={_MAX_TASKS}",
        f"--purge_offline_workers={_FORGET_WORKERS_S}",
        "--tasks_columns=name,args,state,received,started,runtime,worker,uuid",
    ]


def flower_environment(settings: "FlowerSettings") -> dict[str, str]:
    """Return the variables that tell Flower who may read it."""
    password = settings.flower_password.get_secret_value()
    return {"FLOWER_BASIC_AUTH": f"{settings.flower_user}:{password}"}
