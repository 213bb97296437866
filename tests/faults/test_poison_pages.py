"""A page that ends whoever reads it, every time, costs itself and no other page."""

import json

import pytest

from tests.support.fault_stage import FaultStage

STAGE_SETTINGS = {
    "PAGEFLEET_MAX_ATTEMPTS": "2",
    # For the page that hangs; sound ones take less even on a machine that is very busy.
    "PAGEFLEET_TASK_HARD_LIMIT_S": "20",
}
POISON_INDEX = 3
OFTEN = 40

pytestmark = pytest.mark.timeout(600)


@pytest.mark.parametrize("action", ["child", "abort", "memory", "hang"])
def test_a_poison_page_fails_alone(stage: FaultStage, action: str) -> None:
    stage.arm("poison_page", *[action] * OFTEN)

    document_id = stage.wait_until_final(stage.submit())

    result, sound = stage.result(document_id), stage.sound
    pages, sound_pages = (json.loads(each.json)["pages"] for each in (result, sound))
    assert result.state == "partly_succeeded"
    assert pages[:POISON_INDEX] == sound_pages[:POISON_INDEX]
    assert [page["state"] for page in pages] == ["ok", "ok", "ok", "failed"]
    stage.require_ended_once()
