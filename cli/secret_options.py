"""Secrets for commands: asked for, out of a file, or from the environment.

The arguments of a process are no place for them: every user of the machine can read those, and the
shell writes them into its history.
"""

import sys
from pathlib import Path

import typer

from cli.errors import EXIT_USAGE, CommandError

ASK = "-"


def read_secret(given: str | None, file: Path | None, *, label: str) -> str | None:
    """Return a secret as options name it, None when none does.

    Args:
        given: ``-`` asks for it without showing it, or takes a line of a pipe; anything else is
            the secret itself.
        file: its first line is the secret.
        label: what is asked for.

    Raises:
        CommandError: both are given, or the file cannot be read or is empty.
    """
    if given is not None and file is not None:
        raise CommandError(
            f"the {label} is given twice, by an option and in {file}",
            "Leave one of them out.",
            exit_code=EXIT_USAGE,
        )
    if file is not None:
        return _first_line(file, label=label)
    if given != ASK:
        return given
    if sys.stdin.isatty():
        answer: str = typer.prompt(label.capitalize(), hide_input=True, err=True)
        return answer
    return sys.stdin.readline().rstrip("\r\n")


def _first_line(file: Path, *, label: str) -> str:
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(
            f"the {label} cannot be read from {file}: {error}",
            f"Name a file whose first line is the {label}, or let '-' ask for it.",
            exit_code=EXIT_USAGE,
        ) from error
    if not lines or not lines[0]:
        raise CommandError(
            f"the first line of {file} is no {label}",
            f"Write the {label} there, or let '-' ask for it.",
            exit_code=EXIT_USAGE,
        )
    return lines[0]
