import pytest

from workers.ocr.pdf_fonts import FontFacts, is_unmapped

SYMBOLIC = 4
NAMED = "<</Type/Encoding/Differences[65/A/B/germandbls/fi 97/a/uni0416/afii10017]>>"
NUMBERED = "<</Type/Encoding/Differences[1/G01/G02/c3/g104/cid57 9/a]>>"


def font(kind: str = "Type1", **changes: object) -> FontFacts:
    facts = {"has_unicode_table": False, "encoding": "", "is_embedded": True, "flags": 32}
    return FontFacts(kind, **{**facts, **changes})  # type: ignore[arg-type] - of any type here


@pytest.mark.parametrize(
    "facts",
    [
        font(has_unicode_table=True, encoding=NUMBERED),
        font(encoding="/WinAnsiEncoding"),
        font(encoding=NAMED),
        font("TrueType"),
        font("TrueType", flags=SYMBOLIC, is_embedded=False),
        font("Type0", flags=SYMBOLIC),
        font("Type3", encoding=NAMED),
        font(flags=SYMBOLIC),
    ],
)
def test_these_fonts_say_what_they_draw(facts: FontFacts) -> None:
    assert not is_unmapped(facts)


@pytest.mark.parametrize(
    "facts",
    [
        font("TrueType", flags=SYMBOLIC),
        font("Type3"),
        font("Type3", encoding=NUMBERED),
        font(encoding=NUMBERED),
    ],
)
def test_these_do_not(facts: FontFacts) -> None:
    assert is_unmapped(facts)
