import pytest

from workers.ocr.scripts import is_spaced_script


@pytest.mark.parametrize("character", ["a", "é", "Ж", "ω", "한", "7", "-", " "])
def test_scripts_with_spaces(character: str) -> None:
    assert is_spaced_script(character)


@pytest.mark.parametrize("character", ["漢", "か", "カ", "。", "　", "」", "𠀋", "㈱"])
def test_scripts_without_spaces(character: str) -> None:
    assert not is_spaced_script(character)
