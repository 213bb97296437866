"""An image over which its process ends costs that image, once, and no worker."""

import pytest

from db.states import Priority
from tests.support.fault_stage import FaultStage
from tests.support.fleet import wait_for

CLERKS = ("clerk-a", "clerk-b")

pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize(
    ("action", "told_as"),
    [
        ("child", "WorkerLostError"),
        ("abort", "WorkerLostError"),
        ("memory", "HostExhaustedError"),
    ],
)
def test_an_image_over_which_its_process_ends_is_not_drawn_again_unasked(
    stage: FaultStage, action: str, told_as: str
) -> None:
    document_id = stage.wait_until_final(stage.submit())
    told_before = stage.log_of_clerks().count(told_as)
    stage.arm("draw_in_page", action, action)

    with stage.fleet.client as client:
        answer = client.get(f"/v1/documents/{document_id}/pages/1/image")
    stage.reached("draw_in_page")
    wait_for(
        "the worker's word that it has seen the end",
        lambda: stage.log_of_clerks().count(told_as) > told_before,
        timeout_s=60,
    )
    # What would have come again stands before this one.
    stage.check(stage.submit(priority=Priority.INTERACTIVE))

    assert answer.status_code == 202
    assert stage.redis.llen("faults:draw_in_page") == 1
    assert all(map(stage.fleet.is_running, CLERKS))
