"""A page that ends whoever reads it, every time, costs itself and no other page."""

import pytest

from tests.support.fault_stage import FaultStage

STAGE_SETTINGS = {
    "PAGEFLEET_MAX_ATTEMPTS": "2",
    # For the page that hangs; sound ones take less even on a machine that is very busy.
    "PAGEFLEET_TASK_HARD_LIMIT_S": "10",
}
POISON_INDEX = 3
OFTEN = 40
# Two tries of the chunk and two of the page, each up to the hard limit.
END_TIMEOUT_S = 300

pytestmark = pytest.mark.timeout(600)


@pytest.mark.parametrize(
    ("action", "code"),
    [
        ("child", "worker_lost"),
        ("abort", "worker_lost"),
        ("memory", "page_crashed"),
        ("hang", "page_timeout"),
    ],
)
def test_a_poison_page_fails_alone(stage: FaultStage, action: str, code: str) -> None:
    stage.arm("poison_page", *[action] * OFTEN)

    document_id = stage.wait_until_final(stage.submit(), timeout_s=END_TIMEOUT_S)

    pages = stage.result(document_id).pages
    assert pages[:POISON_INDEX] == stage.sound.pages[:POISON_INDEX]
    assert [(page["state"], page.get("error", {}).get("code")) for page in pages] == [
        *[("ok", None)] * POISON_INDEX,
        ("failed", code),
    ]
    assert stage.state(document_id) == "partly_succeeded"
    stage.require_ended_once()
