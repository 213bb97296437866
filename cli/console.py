"""Where commands write: results to standard output, everything else to standard error."""

import codecs
import io
import json
import logging
import os
import sys
import unicodedata
from pathlib import Path
from typing import IO, Any

from rich.console import Console
from rich.markup import escape

from cli.errors import CommandError

_CONTROL_CATEGORIES = frozenset({"Cc", "Zl", "Zp"})
_EMBEDDINGS = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})


class _LastingConsole(Console):
    """Goes on when its reader has gone: ``up | head -1`` must not end the stack."""

    def on_broken_pipe(self) -> None:
        _discard(self.file)


def _discard(stream: IO[str]) -> None:
    """Send what is still written to a stream nowhere."""
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())


def set_up_streams() -> None:
    """Let every text be written: what a stream's encoding lacks becomes an escape.

    A file name need not be UTF-8, and with ``LANG=C`` standard output may be ASCII; neither is a
    reason not to read the other files.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def as_text(path: Path | str) -> str:
    """Return a file's name for JSON; a byte in it that is no UTF-8 becomes U+FFFD."""
    return str(path).encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def shown(path: Path | str) -> str:
    """Return a file's name for people; U+FFFD stands for what a terminal would act upon.

    That is bytes that are no UTF-8, and characters that control the terminal, end the line or turn
    its direction.
    """
    return "".join("\ufffd" if _is_control(character) else character for character in as_text(path))


def _is_control(character: str) -> bool:
    return (
        unicodedata.category(character) in _CONTROL_CATEGORIES
        or unicodedata.bidirectional(character) in _EMBEDDINGS
    )


def output() -> Console:
    """Return the console for what was asked for; plain and unwrapped when it is not a terminal.

    Made for each use, because tests and pipes exchange the stream.
    """
    return _LastingConsole(file=sys.stdout, highlight=False, soft_wrap=True)


def notices() -> Console:
    """Return the console for progress, warnings and errors."""
    return _LastingConsole(file=sys.stderr, highlight=False, soft_wrap=True)


def json_line(record: dict[str, Any]) -> str:
    """Return one record for machines, on one line, in characters that standard output takes."""
    is_utf8 = codecs.lookup(sys.stdout.encoding or "ascii").name == "utf-8"
    return json.dumps(record, ensure_ascii=not is_utf8)


def print_json_line(record: dict[str, Any]) -> None:
    """Write one record for machines, and let a reading pipe have it at once."""
    write_line(json_line(record))


def write_line(line: str) -> None:
    """Write a line to standard output as it is, and let a reading pipe have it at once."""
    try:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        _discard(sys.stdout)


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
    # File names and server answers may hold what rich takes for markup, and a terminal for more.
    message = "\n".join(map(shown, error.message.split("\n")))
    console.print(f"[red]error:[/red] {escape(message)}")
    if error.remedy:
        console.print(f"  {escape(error.remedy)}")
