import pytest

from api.csv_rows import csv_lines


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", " =1", "\uff1d1+1"])
def test_a_text_is_no_formula_of_a_spreadsheet(name: str) -> None:
    assert csv_lines([[name]]) == f"'{name}\r\n"


def test_numbers_stay_numbers_and_what_is_missing_is_an_empty_cell() -> None:
    assert csv_lines([[-1, None, "a,b"], [0.5, "", 'a"b']]) == '-1,,"a,b"\r\n0.5,,"a""b"\r\n'


def test_truth_is_written_as_in_json() -> None:
    assert csv_lines([[True, False, 1, 0]]) == "true,false,1,0\r\n"
