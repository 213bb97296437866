"""What ``pagefleet ocr`` lets a user choose by name; a wrong name is told the right ones."""

from pathlib import Path
from typing import get_args

from pydantic import ValidationError

from cli.console import shown
from cli.errors import EXIT_USAGE, CommandError
from workers.ocr.bundle import MANIFEST_NAME
from workers.ocr.modes import Mode, TextOrder
from workers.ocr.options import OcrOptions
from workers.ocr.profiles import PROFILES


def require_profile(given: str) -> None:
    """Look for the profile before the files are, of which there may be many.

    Raises:
        CommandError: there is none of this name, nor such a folder.
    """
    if given in PROFILES or (Path(given) / MANIFEST_NAME).exists():
        return
    raise CommandError(
        f"no profile is called {shown(given)!r}, and it is no folder with a {MANIFEST_NAME}",
        f"The profiles are: {', '.join(sorted(PROFILES))}; or a folder of your own models, such as"
        " --profile ./my-models, which `pagefleet models check ./my-models --write` describes.",
        exit_code=EXIT_USAGE,
    )


def known_mode(given: str) -> Mode:
    """Return the mode of this name.

    Raises:
        CommandError: there is none.
    """
    for mode in get_args(Mode):
        if mode == given:
            chosen: Mode = mode
            return chosen
    raise CommandError(
        f"no mode is called {given!r}", "The modes are: auto, ocr, text.", exit_code=EXIT_USAGE
    )


def known_text_order(given: str) -> TextOrder:
    """Return the order of this name.

    Raises:
        CommandError: there is none.
    """
    for text_order in get_args(TextOrder):
        if text_order == given:
            chosen: TextOrder = text_order
            return chosen
    raise CommandError(
        f"no text order is called {given!r}",
        "The orders are: reading, file.",
        exit_code=EXIT_USAGE,
    )


def chosen_options(
    *,
    mode: str,
    text_order: str,
    dpi: int,
    pages: str | None,
    max_pages: int | None,
    languages: str | None,
) -> OcrOptions:
    """Return the options of all files.

    Raises:
        CommandError: one of them has a value that there is not.
    """
    try:
        return OcrOptions.model_validate({
            "mode": known_mode(mode),
            "text_order": known_text_order(text_order),
            "dpi": dpi,
            "pages": pages,
            "max_pages": max_pages,
            "languages": () if languages is None else tuple(languages.split(",")),
        })
    except ValidationError as error:
        name = str(error.errors()[0]["loc"][0])
        raise CommandError(
            f"--{name.replace('_', '-')} has no value that can be used",
            "Write as --pages 1-3,7, --max-pages 100, --languages de,en.",
            exit_code=EXIT_USAGE,
        ) from error
