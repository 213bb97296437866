import pytest

from workers.ocr.charset import check_charset, split_charset
from workers.ocr.errors import ModelFileError


def test_a_line_end_at_the_end_starts_no_character() -> None:
    assert split_charset("a\nb\n") == ("a", "b", " ")


def test_line_ends_of_windows_are_no_characters() -> None:
    assert split_charset("a\r\nb\r\nc") == ("a", "b", "c", " ")


def test_a_carriage_return_among_plain_lines_is_a_character() -> None:
    assert split_charset("a\n\r\nb\n") == ("a", "\r", "b", " ")


def test_a_model_may_have_no_class_for_the_space() -> None:
    assert split_charset("a\nb", has_space_class=False) == ("a", "b")


def test_a_charset_that_lacks_only_the_space_names_the_switch() -> None:
    with pytest.raises(ModelFileError, match='"has_space_class": false'):
        check_charset(("a", "b", " "), 3, has_space_class=True)
