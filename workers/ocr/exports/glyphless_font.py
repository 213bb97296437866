"""A font that draws nothing and says which characters it does not draw, for hidden text.

Codes are two bytes. One of the basic plane is its own code, so that any of them can be written at
once; the others take the places of the surrogates, which are no characters, as they come.
"""

import struct
import zlib
from typing import Final

FONT_NAME: Final = "PagefleetHidden"
"""Its name, and what it has to be called in the resources of a page."""

FONT_OBJECT_COUNT: Final = 6
"""How many objects it takes, its CMap, the last of them, included."""

ASCENT: Final = 0.8
"""Share of a letter's height above the baseline."""

DESCENT: Final = 0.2
ADVANCE: Final = 0.5
"""Width of every letter, as a share of its height."""

_UNITS: Final = 1000
_SURROGATES: Final = range(0xD800, 0xE000)
_FIRST_SURROGATE: Final = "\ud800"
_REPLACEMENT: Final = 0xFFFD
_BASIC_STOP: Final = 0x10000
_BLOCK: Final = 100  # most entries of one block in a CMap


class GlyphCodes:
    """Which code stands for which character in one document."""

    def __init__(self) -> None:
        self._higher: dict[str, int] = {}

    def encode(self, text: str) -> str:
        """Return the codes of a text in hexadecimal.

        More than 2,048 different characters outside the basic plane are more than there are
        places; those that find none become U+FFFD.
        """
        if max(text, default="") < _FIRST_SURROGATE:
            return text.encode("utf-16-be").hex()  # the same, and much faster
        return "".join(f"{self._code(character):04x}" for character in text)

    def _code(self, character: str) -> int:
        point = ord(character)
        if point < _BASIC_STOP:
            return _REPLACEMENT if point in _SURROGATES else point
        if character not in self._higher and len(self._higher) < len(_SURROGATES):
            self._higher[character] = _SURROGATES[len(self._higher)]
        return self._higher.get(character, _REPLACEMENT)

    def to_unicode(self) -> bytes:
        """Return the CMap from codes to characters (PDF 32000-1, 9.10.3)."""
        rows = [
            f"<{high:02X}00> <{high:02X}FF> <{high:02X}00>"
            for high in range(256)
            if high << 8 not in _SURROGATES
        ]
        singles = [
            f"<{code:04X}> <{character.encode('utf-16-be').hex().upper()}>"
            for character, code in self._higher.items()
        ]
        parts = [
            "/CIDInit /ProcSet findresource begin 12 dict begin begincmap",
            "/CIDSystemInfo <</Registry (Adobe) /Ordering (UCS) /Supplement 0>> def",
            "/CMapName /Adobe-Identity-UCS def /CMapType 2 def",
            "1 begincodespacerange <0000> <FFFF> endcodespacerange",
            *_blocks(rows, "bfrange"),
            *_blocks(singles, "bfchar"),
            "endcmap CMapName currentdict /CMap defineresource pop end end",
        ]
        return "\n".join(parts).encode()


def font_objects(first: int) -> list[tuple[str, bytes | None]]:
    """Return the font's objects but its CMap: a dictionary each, and a stream's content or None.

    Args:
        first: number of the first object, which is the font; the others follow, and the CMap is
            to be the one after the last.
    """
    program, places = _true_type(), zlib.compress(b"\x00\x01" * 0x10000, 9)
    bounds = f"[0 {-DESCENT * _UNITS:g} {_UNITS} {ASCENT * _UNITS:g}]"
    font = (
        f"<</Type/Font/Subtype/Type0/BaseFont/{FONT_NAME}/Encoding/Identity-H"
        f"/DescendantFonts[{first + 1} 0 R]/ToUnicode {first + FONT_OBJECT_COUNT - 1} 0 R>>"
    )
    descendant = (
        f"<</Type/Font/Subtype/CIDFontType2/BaseFont/{FONT_NAME}/DW {ADVANCE * _UNITS:g}"
        "/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>"
        f"/CIDToGIDMap {first + 4} 0 R/FontDescriptor {first + 2} 0 R>>"
    )
    descriptor = (
        f"<</Type/FontDescriptor/FontName/{FONT_NAME}/Flags 5/FontBBox{bounds}"
        f"/ItalicAngle 0/Ascent {ASCENT * _UNITS:g}/Descent {-DESCENT * _UNITS:g}"
        f"/CapHeight {ASCENT * _UNITS:g}/StemV 80/FontFile2 {first + 3} 0 R>>"
    )
    return [
        (font, None),
        (descendant, None),
        (descriptor, None),
        (f"<</Length1 {len(program)}/Length {len(program)}>>", program),
        (f"<</Filter/FlateDecode/Length {len(places)}>>", places),
    ]


def _blocks(entries: list[str], kind: str) -> list[str]:
    return [
        f"{len(entries[start : start + _BLOCK])} begin{kind}\n"
        + "\n".join(entries[start : start + _BLOCK])
        + f"\nend{kind}"
        for start in range(0, len(entries), _BLOCK)
    ]


def _true_type() -> bytes:
    """Return a TrueType font of two glyphs without outline: .notdef and the one that all get."""
    ascent, descent = round(ASCENT * _UNITS), -round(DESCENT * _UNITS)
    advance = round(ADVANCE * _UNITS)
    tables = {
        b"glyf": bytes(4),
        b"head": struct.pack(
            ">IIIIHHqqhhhhHHhhh",
            *(0x00010000, 0x00010000, 0, 0x5F0F3CF5, 0, _UNITS, 0, 0),
            *(0, descent, _UNITS, ascent, 0, 8, 2, 0, 0),
        ),
        b"hhea": struct.pack(
            ">IhhhHhhhhhhhhhhhH",
            *(0x00010000, ascent, descent, 0, advance, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2),
        ),
        b"hmtx": struct.pack(">HhHh", advance, 0, advance, 0),
        b"loca": struct.pack(">HHH", 0, 0, 0),
        b"maxp": struct.pack(">I14H", 0x00010000, 2, *[0] * 4, 2, *[0] * 8),
    }
    placed = 12 + 16 * len(tables)
    directory, body = b"", b""
    for tag, content in tables.items():
        padded = content + bytes(-len(content) % 4)
        directory += struct.pack(">4sIII", tag, _checksum(padded), placed + len(body), len(content))
        body += padded
    # Six tables: the greatest power of two is 4.
    return struct.pack(">IHHHH", 0x00010000, len(tables), 64, 2, 32) + directory + body


def _checksum(padded: bytes) -> int:
    words: tuple[int, ...] = struct.unpack(f">{len(padded) // 4}I", padded)
    return sum(words) & 0xFFFFFFFF
