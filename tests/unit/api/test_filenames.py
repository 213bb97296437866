import unicodedata
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.filenames import UNNAMED, content_disposition, safe_filename


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("invoice 2041.pdf", "invoice 2041.pdf"),
        ("契約書.pdf", "契約書.pdf"),
        ("../../etc/passwd", "passwd"),
        ("C:\\scans\\page.tif", "page.tif"),
        ("a\r\nSet-Cookie: x=1.pdf", "a__Set-Cookie_ x=1.pdf"),
        ("nul\0byte.png", "nul_byte.png"),
        ("\u202efdp.exe", "_fdp.exe"),
        ('a"b.pdf', "a_b.pdf"),
        ("\u200b\u2060.pdf", "__.pdf"),
        ("\u3000", "_"),
        ("\u3164.\u2800", "_._"),
        ("می\u200cخواهم.pdf", "می\u200cخواهم.pdf"),
        ("..", UNNAMED),
        ("", UNNAMED),
        ("folder/", UNNAMED),
    ],
)
def test_a_file_name_is_stored_without_what_can_do_harm(sent: str, kept: str) -> None:
    assert safe_filename(sent) == kept


@given(st.text())
def test_no_file_name_names_a_folder_or_hides_a_character(sent: str) -> None:
    kept = safe_filename(sent)

    assert kept
    assert kept not in {".", ".."}
    assert not set(kept) & set('/\\\0"')
    assert not {unicodedata.category(character) for character in kept} & {"Cc", "Cs", "Zl", "Zp"}


@given(st.text().map(safe_filename))
def test_a_disposition_is_one_header_line_that_gives_the_name_back(filename: str) -> None:
    disposition = content_disposition(filename, extension=".json")

    _, _, extended = disposition.partition("filename*=UTF-8''")
    assert disposition.isascii()
    assert disposition.isprintable()
    assert disposition.count('"') == 2
    assert unquote(extended) == (filename.rpartition(".")[0] or filename) + ".json"


def test_the_plain_name_of_a_disposition_keeps_ascii() -> None:
    disposition = content_disposition("Straße 5%.pdf", extension=".txt")

    assert disposition.startswith('attachment; filename="Stra_e 5_.txt"; ')
