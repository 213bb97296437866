"""Where commands write: results to standard output, everything else to standard error."""

import json
import logging
import sys
from typing import Any

from rich.console import Console
from rich.markup import escape

from cli.errors import CommandError


def output() -> Console:
    """Return the console for what was asked for; plain and unwrapped when it is not a terminal.

    Made for each use, because tests and pipes exchange the stream.
    """
    return Console(file=sys.stdout, highlight=False, soft_wrap=True)


def notices() -> Console:
    """Return the console for progress, warnings and errors."""
    return Console(file=sys.stderr, highlight=False, soft_wrap=True)


def json_line(record: dict[str, Any]) -> str:
    """Return one record for machines, on one line."""
    return json.dumps(record, ensure_ascii=False)


def print_json_line(record: dict[str, Any]) -> None:
    """Write one record for machines, and let a reading pipe have it at once."""
    sys.stdout.write(json_line(record) + "\n")
    sys.stdout.flush()


def quiet_logs() -> None:
    """Keep the log of a command's own process to errors, on standard error.

    What it would say at lower levels is a worker's; a command says it in its own words.
    """
    import structlog

    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


def report_error(error: CommandError) -> None:
    """Show why a command ended, and the remedy."""
    console = notices()
    # File names and server answers may hold what rich takes for markup.
    console.print(f"[red]error:[/red] {escape(error.message)}")
    if error.remedy:
        console.print(f"  {escape(error.remedy)}")
