"""docs/settings.md says of every setting what the code says."""

import pytest

import api.settings
import cli.settings
from tests.support.guides import setting_rows, settings_classes, table_rows
from workers.settings import WorkerSettings

WRITTEN = [row for row in table_rows("settings.md") if row[0].startswith("`")]
CODE = setting_rows()
VARIABLES = [row[0] for row in CODE]


def test_the_guide_lists_each_setting_once_and_no_other() -> None:
    assert sorted(row[0] for row in WRITTEN) == VARIABLES


@pytest.mark.parametrize("row", CODE, ids=VARIABLES)
def test_the_guide_says_of_a_setting_what_the_code_says(row: list[str]) -> None:
    assert [each for each in WRITTEN if each[0] == row[0]] == [row]


@pytest.mark.parametrize("row", CODE, ids=VARIABLES)
def test_a_setting_is_described(row: list[str]) -> None:
    assert row[3]


def test_every_program_is_looked_at() -> None:
    assert {api.settings.ApiSettings, cli.settings.FlowerSettings, WorkerSettings} <= set(
        settings_classes()
    )
