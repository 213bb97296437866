"""What the death of a worker costs: time, but no page and no letter."""

import os
import signal

import pytest

from cli.samples import Sample
from tests.support.fleet import COMMANDS, Fleet

TIMEOUT_S = 300
BATCH = ["letters.pdf", "scanned-letters.pdf", "chinese-inventory.pdf", "register.tiff"]

pytestmark = pytest.mark.timeout(900)


def test_killed_workers_cost_no_page_and_change_no_result(
    fleet: Fleet, samples: dict[str, Sample]
) -> None:
    paths = [samples[name].path for name in BATCH]
    undisturbed = fleet.results(fleet.submit_all(paths), timeout_s=TIMEOUT_S)

    ids = fleet.submit_all(paths)
    os.kill(fleet.wait_for_claim(), signal.SIGKILL)
    fleet.wait_for_claim()
    fleet.kill_group("recognizer")
    fleet.start("recognizer", *COMMANDS["recognizer"])
    disturbed = fleet.results(ids, timeout_s=TIMEOUT_S)

    assert disturbed == undisturbed
