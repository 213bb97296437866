"""File names are data of a stranger: made harmless when they come in, quoted when they go out."""

import re
import unicodedata
from urllib.parse import quote

MAX_LENGTH = 255
UNNAMED = "document"

# Marks that turn the direction of text: "fdp.exe" can be shown as "exe.pdf" with them.
_DIRECTION_MARKS = frozenset(
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)
# Controls, surrogates, private and unassigned characters, line and paragraph separators.
_UNSHOWABLE_CATEGORIES = frozenset({"Cc", "Cs", "Co", "Cn", "Zl", "Zp"})
# Not allowed, or of a meaning of their own, in the file names of some system.
_RESERVED = frozenset('<>:"|?*')
# Nothing to see: formatting characters and spaces of any width, and what its category calls
# otherwise. Within a name they have their use, in Persian and in emoji for instance.
_INVISIBLE_CATEGORIES = frozenset({"Cf", "Zs"})
_BLANKS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")


def safe_filename(sent: str) -> str:
    """Return the last component of a name as it can be stored and shown; never empty.

    Folders are dropped, whichever way they are written, and characters that cannot be shown
    become ``_``; so do invisible ones in a name that has no others before its ending. The result
    may be longer than ``MAX_LENGTH``; the caller refuses it then.
    """
    last = re.split(r"[/\\]", sent)[-1]
    shown = "".join("_" if _is_unshowable(character) else character for character in last)
    kept = shown.strip(" .")
    stem = kept.rpartition(".")[0] or kept
    if all(map(_is_invisible, stem)):
        kept = "".join("_" if _is_invisible(character) else character for character in kept)
    return kept or UNNAMED


def content_disposition(filename: str, *, extension: str) -> str:
    """Return a Content-Disposition that saves under the name of a document's file.

    Args:
        filename: what ``safe_filename`` made.
        extension: what takes the place of the file's own, with its dot.

    Source:
        RFC 6266, and RFC 8187 for the extended parameter; the plain one is for old clients.
    """
    stem, dot, _ = filename.rpartition(".")
    name = (stem if dot else filename) + extension
    plain = "".join(
        character if character.isascii() and character not in '"\\%' else "_" for character in name
    )
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"


def _is_unshowable(character: str) -> bool:
    return (
        character in _DIRECTION_MARKS
        or character in _RESERVED
        or unicodedata.category(character) in _UNSHOWABLE_CATEGORIES
    )


def _is_invisible(character: str) -> bool:
    return character in _BLANKS or unicodedata.category(character) in _INVISIBLE_CATEGORIES
