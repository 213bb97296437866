"""Which fonts of a PDF say what their codes mean.

A font's codes are characters by a table in the file (/ToUnicode), by a named encoding, or by the
names of its glyphs. Where none of these is there, or the names are numbers, a reader of the file
guesses, and what it gives looks like text.
"""

import re
from dataclasses import dataclass
from typing import Final

# Names that producers number their glyphs with, instead of telling what they are: /G12, /c65, /a7.
_NUMBERED: Final = re.compile(r"/(?:[A-Za-z]{1,2}|cid|glyph|index|char|gid)[\d_]\w*(?=[\s/\]]|$)")
_NAMES: Final = re.compile(r"/[^\s/\[\]<>()]+")
_REAL_NUMBERED: Final = re.compile(r"/(?:uni[0-9A-Fa-f]{4}|u[0-9A-Fa-f]{4,6}|afii\d+)$")
_SYMBOLIC_FLAG: Final = 4


@dataclass(frozen=True, slots=True)
class FontFacts:
    """What a font's dictionary says.

    Attributes:
        kind: its /Subtype: Type1, TrueType, Type3, Type0, …
        has_unicode_table: whether it has /ToUnicode.
        encoding: source of its /Encoding, references followed; empty for none.
        is_embedded: whether the font itself is in the file.
        flags: of its descriptor, 0 where there is none.
    """

    kind: str
    has_unicode_table: bool
    encoding: str
    is_embedded: bool
    flags: int


def is_unmapped(font: FontFacts) -> bool:
    """Whether the file does not say which characters the codes of a font are."""
    if font.has_unicode_table or font.kind == "Type0":
        # Characters of a composite font without a table come as unknown ones, and are counted.
        return False
    if not font.encoding:
        is_symbolic = bool(font.flags & _SYMBOLIC_FLAG)
        return font.kind == "Type3" or (
            font.kind == "TrueType" and font.is_embedded and is_symbolic
        )
    if "/Differences" not in font.encoding:
        return False
    names = _NAMES.findall(font.encoding.partition("/Differences")[2].partition("]")[0])
    numbered = sum(
        _NUMBERED.fullmatch(name) is not None and _REAL_NUMBERED.match(name) is None
        for name in names
    )
    return 2 * numbered > len(names)
