"""Who is compared, and how each is started."""

from dataclasses import replace
from pathlib import Path

from bench.contenders import Setting, ours

SETTING = Setting(
    cores=2,
    profile="balanced",
    route="ocr",
    device="cpu",
    home=Path("home"),
    environment={"PAGEFLEET_ENGINE": "auto", "LANG": "C"},
)


def test_without_a_choice_the_engine_is_that_of_the_environment() -> None:
    contender = ours(SETTING)

    assert (contender.name, contender.environment) == ("pagefleet", SETTING.environment)


def test_a_chosen_engine_takes_part_under_its_own_name() -> None:
    contender = ours(replace(SETTING, engine="openvino"))

    assert contender.name == "pagefleet openvino"
    assert contender.environment == {"PAGEFLEET_ENGINE": "openvino", "LANG": "C"}


def test_the_text_order_reaches_the_program() -> None:
    (command,) = ours(replace(SETTING, text_order="file")).commands

    assert command[command.index("--text-order") + 1] == "file"


def test_slots_share_the_cores() -> None:
    contender = ours(replace(SETTING, cores=4, slots=2))

    assert len(contender.commands) == 2
    assert "2 slots on 2 cores each" in contender.how
