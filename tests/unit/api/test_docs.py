import pytest

from api.errors import ERRORS
from api.settings import ApiSettings
from tests.support.guides import DOCS, table_rows
from workers.settings import WorkerSettings

GUIDE = (DOCS / "api.md").read_text(encoding="utf-8")
ROWS = table_rows("api.md")


@pytest.mark.parametrize("code", sorted(ERRORS))
def test_the_guide_names_every_error(code: str) -> None:
    assert f"`{code}`" in GUIDE


@pytest.mark.parametrize("code", sorted(code for code in ERRORS if ERRORS[code].status))
def test_the_guide_gives_every_error_its_status(code: str) -> None:
    (status,) = {row[0] for row in ROWS if f"`{code}`" in row[1]}

    assert status == str(ERRORS[code].status)


@pytest.mark.parametrize(
    "variable", sorted(ApiSettings.variable_names() - WorkerSettings.variable_names())
)
def test_the_guide_names_every_setting(variable: str) -> None:
    assert f"`{variable}`" in GUIDE
