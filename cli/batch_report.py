"""``pagefleet report``: what became of each document of a batch."""

from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cli.console import notices, shown, write_line
from cli.errors import CommandError
from cli.secret_options import read_secret
from cli.status import ApiKeyFileOption, ApiKeyOption, ApiUrlOption, connect, parse_id


class ReportFormat(StrEnum):
    """For a spreadsheet, or for programs."""

    CSV = "csv"
    NDJSON = "ndjson"


def report(
    batch: Annotated[str, typer.Argument(metavar="BATCH", help="Id of the batch.")],
    *,
    report_format: Annotated[
        ReportFormat, typer.Option("--format", help="ndjson has the metadata too.")
    ] = ReportFormat.CSV,
    target: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Default: standard output."),
    ] = None,
    api_url: ApiUrlOption = None,
    api_key: ApiKeyOption = None,
    api_key_file: ApiKeyFileOption = None,
) -> None:
    """Fetch the report of a batch: a line for each document, oldest first.

    A file is written whole or not at all.
    """
    batch_id = parse_id(batch)
    with connect(api_url, read_secret(api_key, api_key_file, label="API key")) as client:
        lines = client.report(batch_id, report_format=report_format)
        if target is None:
            for line in lines:
                write_line(line.rstrip("\r\n"))
            return
        partial = target.with_name(f".{target.name}.partial")
        try:
            with partial.open("w", encoding="utf-8", newline="") as file:
                file.writelines(lines)
            partial.replace(target)
        except OSError as error:
            raise CommandError(
                f"the report cannot be written to {shown(target)}: {error.strerror}",
                "Name another file with -o.",
            ) from error
        finally:
            with suppress(OSError):
                partial.unlink(missing_ok=True)
    notices().print(f"report: {shown(target)}", markup=False)
