"""The option ``--format``, as ``ocr`` and ``export`` take it."""

from typing import Annotated

import typer

from cli.errors import EXIT_USAGE, CommandError
from workers.ocr.exports.formats import FORMATS, ExportFormat

FormatOption = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="|".join(FORMATS),
        help="What is written; pdf is the document with searchable text.",
    ),
]


def known_format(given: str) -> ExportFormat:
    """Return the format of this name.

    Raises:
        CommandError: there is none.
    """
    for known in FORMATS:
        if known == given:
            return known
    raise CommandError(
        f"no output format is called {given!r}",
        f"The formats are: {', '.join(FORMATS)}.",
        exit_code=EXIT_USAGE,
    )
