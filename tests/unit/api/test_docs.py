from pathlib import Path

import pytest

from api.errors import ERRORS
from api.settings import ApiSettings
from workers.settings import WorkerSettings

GUIDE = (Path(__file__).parents[3] / "docs" / "api.md").read_text(encoding="utf-8")
ROWS = [line.split("|") for line in GUIDE.splitlines() if line.startswith("|")]


@pytest.mark.parametrize("code", sorted(ERRORS))
def test_the_guide_names_every_error(code: str) -> None:
    assert f"`{code}`" in GUIDE


@pytest.mark.parametrize("code", sorted(code for code in ERRORS if ERRORS[code].status))
def test_the_guide_gives_every_error_its_status(code: str) -> None:
    (status,) = {row[1].strip() for row in ROWS if f"`{code}`" in row[2]}

    assert status == str(ERRORS[code].status)


@pytest.mark.parametrize(
    "variable", sorted(ApiSettings.variable_names() - WorkerSettings.variable_names())
)
def test_the_guide_names_every_setting(variable: str) -> None:
    assert f"`{variable}`" in GUIDE
