"""``pagefleet api``: the HTTP API in this process."""

from typing import Annotated

import typer

from cli.errors import EXIT_USAGE, CommandError


def api(
    *,
    host: Annotated[
        str | None, typer.Option(help="Address to listen on. Default: PAGEFLEET_API_HOST.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Port, 0 for a free one. Default: PAGEFLEET_API_PORT."),
    ] = None,
) -> None:
    """Serve the HTTP API until stopped; SIGTERM lets requests finish first."""
    from api.server import serve
    from api.settings import read_api_settings
    from workers.settings import SettingsError

    try:
        settings = read_api_settings()
    except SettingsError as error:
        raise CommandError(
            f"the settings are wrong:\n{error}",
            "`pagefleet up` serves it locally without any; docs/settings.md lists all.",
            exit_code=EXIT_USAGE,
        ) from error
    chosen = {"api_host": host, "api_port": port}
    serve(
        settings.model_copy(
            update={name: value for name, value in chosen.items() if value is not None}
        )
    )
