"""Names of files on this machine, made from names that strangers gave their documents."""

import re
import unicodedata
from typing import Final

_MAX_BYTES: Final = 255
_UNSAFE: Final = re.compile(r'[<>:"|?*]')
# Windows opens a device, whatever ending such a name has.
_DEVICES: Final = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)", re.IGNORECASE)


def local_name(given: str, ending: str) -> str:
    """Return a file name without folders, of at most 255 bytes.

    Args:
        given: the document's name; its own ending is taken off.
        ending: what is put in its place; it makes the name unique.
    """
    last = re.split(r"[/\\]", given)[-1]
    stem = last.rpartition(".")[0] or last
    kept = "".join(
        "_" if unicodedata.category(character)[0] == "C" else character for character in stem
    )
    kept = _UNSAFE.sub("_", kept).strip(" .") or "document"
    if _DEVICES.fullmatch(kept.partition(".")[0]):
        kept = f"_{kept}"
    room = _MAX_BYTES - len(ending.encode())
    return kept.encode()[:room].decode(errors="ignore").rstrip(" .") + ending
