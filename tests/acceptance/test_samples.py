"""The whole stack on the project's samples: HTTP in, JSON out."""

from typing import Any

import pytest

from cli.samples import Sample
from tests.support.fleet import Fleet
from tests.support.metrics import character_error_rate
from tests.support.results import require_valid

TIMEOUT_S = 240
READABLE = ["letters.pdf", "scanned-letters.pdf", "chinese-inventory.pdf", "register.tiff"]
REFUSED_BY_A_WORKER = ["damaged.pdf", "encrypted.pdf"]
MAX_CER = 0.02

pytestmark = pytest.mark.timeout(600)


def test_the_samples_come_out_as_their_text(fleet: Fleet, samples: dict[str, Sample]) -> None:
    # The dense page takes as long as all others; the demo reads it.
    names = [*READABLE, *REFUSED_BY_A_WORKER]
    ids = fleet.submit_all(samples[name].path for name in names)
    views = {
        name: fleet.wait_until_final(document_id, timeout_s=TIMEOUT_S)
        for name, document_id in ids.items()
    }

    results = {name: fleet.result(ids[name]) for name in READABLE}

    assert {name: views[name]["error"]["code"] for name in REFUSED_BY_A_WORKER} == {
        name: samples[name].error_code for name in REFUSED_BY_A_WORKER
    }
    assert {name: text_error(results[name], samples[name]) <= MAX_CER for name in READABLE} == (
        dict.fromkeys(READABLE, True)
    )
    for result in results.values():
        require_valid(result)


def text_error(result: dict[str, Any], sample: Sample) -> float:
    expected = "\f".join("\n".join(lines) for lines in sample.page_lines)
    return character_error_rate(expected, result["full_text"])


def test_the_chord_alone_finishes_a_document_of_many_chunks(
    fleet: Fleet, samples: dict[str, Sample]
) -> None:
    fleet.kill_group("reconciler")
    fleet.kill_group("assembler")
    fleet.start(
        "assembler",
        *("worker", "--queues", "split,assemble", "--slots", "1"),
        PAGEFLEET_CHUNK_PAGES="1",
    )

    view = fleet.wait_until_final(fleet.submit(samples["letters.pdf"].path), timeout_s=TIMEOUT_S)

    assert view["state"] == "succeeded"
