import pytest

from cli.local_names import local_name


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("scan.pdf", "scan.1.txt"),
        ("no ending", "no ending.1.txt"),
        ("../../etc/passwd", "passwd.1.txt"),
        ("C:\\\\temp\\\\scan.pdf", "scan.1.txt"),
        ("..", "document.1.txt"),
        ("a\x00b\x1b[31m\u202egnp.pdf", "a_b_[31m_gnp.1.txt"),
        ('a<b>:"|?*c.pdf', "a_b______c.1.txt"),
        ("CON.pdf", "_CON.1.txt"),
        (". .pdf", "document.1.txt"),
        ("Gr\u00fc\u00dfe.pdf", "Gr\u00fc\u00dfe.1.txt"),
    ],
)
def test_a_local_name_is_one_harmless_component(given: str, name: str) -> None:
    assert local_name(given, ".1.txt") == name


@pytest.mark.parametrize("given", ["x" * 400, "\U0001f642" * 100 + ".pdf"])
def test_a_local_name_fits_into_a_folder(given: str) -> None:
    name = local_name(given, ".019ab8e2-6f3c-7c11-9d5e-0a1b2c3d4e5f.searchable.pdf")

    assert len(name.encode()) <= 255
    assert name.endswith(".searchable.pdf")
