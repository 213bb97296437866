import pytest
from flower.options import options

from cli.errors import EXIT_USAGE, CommandError
from cli.flower import flower_command, flower_environment
from cli.settings import FlowerSettings, load_settings


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> FlowerSettings:
    monkeypatch.setenv("PAGEFLEET_FLOWER_USER", "ada")
    monkeypatch.setenv("PAGEFLEET_FLOWER_PASSWORD", "blotting-paper")
    return load_settings(FlowerSettings)


def test_flower_knows_every_option_that_it_is_given() -> None:
    given = [part for part in flower_command(host="127.0.0.1", port=1) if part.startswith("--")]

    # Flower drops an option that it does not know without a word.
    unknown = [part for part in given if not hasattr(options, part[2:].partition("=")[0])]
    assert unknown == []


def test_nobody_changes_anything_from_flower() -> None:
    assert "--read_only=true" in flower_command(host="127.0.0.1", port=1)


def test_the_password_is_in_the_environment_and_not_on_the_command_line(
    account: FlowerSettings,
) -> None:
    assert flower_environment(account) == {"FLOWER_BASIC_AUTH": "ada:blotting-paper"}
    assert not any("blotting" in part for part in flower_command(host="127.0.0.1", port=1))


@pytest.mark.parametrize("password", ["", "short", "two,accounts:here"])
def test_a_password_that_would_not_guard_is_refused(
    monkeypatch: pytest.MonkeyPatch, password: str
) -> None:
    monkeypatch.setenv("PAGEFLEET_FLOWER_PASSWORD", password)

    with pytest.raises(CommandError) as refused:
        load_settings(FlowerSettings)

    assert refused.value.exit_code == EXIT_USAGE
    assert "PAGEFLEET_FLOWER_PASSWORD" in refused.value.message
    assert not password or password not in refused.value.message


def test_a_misspelt_name_of_the_own_area_is_refused(
    monkeypatch: pytest.MonkeyPatch, account: FlowerSettings
) -> None:
    del account
    monkeypatch.setenv("PAGEFLEET_FLOWER_PASWORD", "x")

    with pytest.raises(CommandError, match="PAGEFLEET_FLOWER_PASWORD is not a setting"):
        load_settings(FlowerSettings)
