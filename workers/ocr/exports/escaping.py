"""Recognized text is a stranger's: made harmless for the format that it goes into."""

import html
import re
from typing import Final

# XML 1.0 has no way to write these, not even escaped; lone surrogates are no text at all.
_XML_ILLEGAL: Final = re.compile("[^\\t\\n\\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_BREAKS: Final = re.compile(r"[\t\n\r]+")
# What a spreadsheet takes for the beginning of a formula, full-width forms included, and what it
# skips before one. Where the user's language has semicolons between cells, quotes hold no cell
# together, and one begins after every semicolon, tab and break.
_FORMULA: Final = "-=+@\uff1d\uff0b\uff0d\uff20"
_FORMULA_BEGIN: Final = re.compile(
    f"^(?=[ \u00a0]*[{_FORMULA}\t\r\n])|(?<=[;\t\r\n])(?=[ \u00a0]*[{_FORMULA}])"
)
# Characters that mean something anywhere in a line of Markdown.
_MARKDOWN_INLINE: Final = re.compile(r"([\\`*_\[\]|~$^])")
# What means something at the beginning of a line alone: headings, lists, rules, tables' lines.
_MARKDOWN_BEGIN: Final = re.compile(r"^(#|[-+=:]|\d{1,9}(?=[.)]))")


def xml_text(text: str) -> str:
    """Return text for an element or a quoted attribute, on one line."""
    return html.escape(_BREAKS.sub(" ", _XML_ILLEGAL.sub("", text)), quote=True)


def hocr_string(text: str) -> str:
    """Return text for a quoted string of an hOCR property: it cannot end the property."""
    return xml_text(re.sub(r'["\\;]', "_", text))


def csv_text(text: str) -> str:
    """Return recognized text for a cell, without controls; see ``harmless_cell``."""
    return harmless_cell(_CONTROLS.sub("", text))


def harmless_cell(text: str) -> str:
    """Return text for a cell: an apostrophe stands before what a spreadsheet would compute."""
    return _FORMULA_BEGIN.sub("'", text)


def markdown_text(text: str) -> str:
    """Return one line of text so that Markdown shows it as it is, and HTML in it stays text."""
    line = _BREAKS.sub(" ", _CONTROLS.sub("", text)).strip()
    line = html.escape(_MARKDOWN_INLINE.sub(r"\\\1", line), quote=False)
    begin = _MARKDOWN_BEGIN.match(line)
    if begin is None:
        return line
    # A number keeps its digits, and its mark is escaped; the other beginnings are the mark.
    place = begin.end() if begin[0][0].isdigit() else begin.start()
    return f"{line[:place]}\\{line[place:]}"
