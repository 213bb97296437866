"""docs/errors.md has every error that a user can meet, as the code has it, with a remedy."""

import pytest

from api.errors import ERRORS
from tests.support.guides import table_rows
from workers.failures import ERROR_CODES

ROWS = [row for row in table_rows("errors.md") if row[0].startswith("`")]
ANSWERS = {row[0].strip("`"): row for row in ROWS if len(row) == 4}
DOCUMENTS = {row[0].strip("`"): row for row in ROWS if len(row) == 5}
REMEDIES = {code: row[-1] for code, row in (ANSWERS | DOCUMENTS).items()}


def test_each_error_has_one_row() -> None:
    assert len(ROWS) == len(ANSWERS) + len(DOCUMENTS)
    assert sorted(ANSWERS) == sorted(set(ERRORS) - set(ERROR_CODES))
    assert sorted(DOCUMENTS) == sorted(ERROR_CODES)


@pytest.mark.parametrize("code", sorted(ERRORS))
def test_an_error_has_the_status_of_its_answer(code: str) -> None:
    written = (ANSWERS | DOCUMENTS)[code][1]

    assert written == str(ERRORS[code].status or "–")


@pytest.mark.parametrize("code", sorted(ERROR_CODES))
def test_an_error_of_a_document_says_whether_it_was_tried_again(code: str) -> None:
    assert DOCUMENTS[code][2] == ("yes" if ERROR_CODES[code].is_retried else "no")


@pytest.mark.parametrize("code", sorted(ERRORS))
def test_an_error_has_a_remedy(code: str) -> None:
    assert len(REMEDIES[code]) > len("nothing; ")
