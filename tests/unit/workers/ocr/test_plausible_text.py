import pytest

from workers.ocr.plausible_text import has_unknown_characters, is_plausible

SHIFTED = (
    "7KH NHHSHU RI WKH ODPS ZURWH GRZQ HYHU\\ VKLS WKDW SDVVHG LWV IODJ LWV KHDGLQJ DQG WKH KRXU "
    "LQ D FDUHIXO URXQG KDQG ZKHQ WKH IRJ FDPH LQ KH ZURWH WKH ZRUG IRJ DQG QRWKLQJ HOVH"
)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The keeper of the lamp wrote down every ship that passed, its flag and the hour.",
        "Zum Schluß übten wir das Große Œuvre: Straßenbahnfahrkarten.",
        "Příliš žluťoučký kůň úpěl ódy. Mężczyźni grzmią.",
        "Съешь же ещё этих мягких французских булок, да выпей чаю.",
        "わたくしといふ現象は假定された有機交流電燈のひとつの青い照明です",
        "在 Debian 系统中，使用 apt-get 命令安装 2.100 版本的软件包。",
        "البرمجة بلغة R وPython من الأدوات القوية",
        "สวัสดีชาวโลก นี่คือข้อความภาษาไทย",
        "for (int i = 0; i < n; ++i) { total += prices[i] * 2; }  # sum of all",
        "1 Introduction . . . . . . . . . . . . . . . . . 7\n2 Method ........................ 12",
        "17.50 3.20 -4.00 % 12 000 EUR 2041 (7)",
        "L = ∑ αᵢ(xᵢ − μ)² / σ², where α ∈ ℝ, β ≥ 0 in λ-calculus",
    ],
)
def test_writing_of_any_kind_is_plausible(text: str) -> None:
    assert is_plausible(text)
    assert not has_unknown_characters(text)


@pytest.mark.parametrize(
    "text",
    [
        '"7+%-',
        SHIFTED,
        "#$%& '()* +,-./ :;<= >?@[ ]^_` {|}~ !!",
        "TнeдqрuиcкbрoшnфoxжjуmпsоvеrтhеlаzуdоgТhеquiсk",
        "bcdfg hjklm npqrs tvwxz " * 10,
        "aaaaaaaaaaaaaaaaaaaaaaaa" * 10,
        "na#me wo$rd si%gn li+ne " * 6,
    ],
)
def test_codes_that_became_letters_are_not(text: str) -> None:
    assert not is_plausible(text)


@pytest.mark.parametrize("character", ["\ufffd", "\ue123", "\x01", "\U0010fffe"])
def test_characters_without_meaning_are_unknown(character: str) -> None:
    assert has_unknown_characters(f"word {character * 3}")


def test_a_bullet_of_a_symbol_font_is_no_harm() -> None:
    assert not has_unknown_characters("\uf0b7 first point of many that are listed on this page")
