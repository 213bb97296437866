"""A file that is sent again needs no reading, and is a document of its own all the same."""

import pytest

from cli.samples import Sample
from tests.support.fleet import Fleet, wait_for
from tests.support.results import require_valid

TIMEOUT_S = 240
CACHED = {"PAGEFLEET_DOCUMENT_CACHE": "true"}
# What tells a served result from that which it was served from.
OWN = {"document_id", "cached", "read_at"}

pytestmark = pytest.mark.timeout(600)


def test_a_file_that_is_sent_again_is_served_by_a_fleet_without_recognizers(
    idle_fleet: Fleet, samples: dict[str, Sample]
) -> None:
    idle_fleet.environment.update(CACHED)
    idle_fleet.start_all()
    path = samples["letters.pdf"].path
    first = idle_fleet.submit(path)
    assert idle_fleet.wait_until_final(first, timeout_s=TIMEOUT_S)["cached"] is False
    idle_fleet.kill_group("recognizer")

    second = idle_fleet.submit(path)
    view = idle_fleet.wait_until_final(second, timeout_s=TIMEOUT_S)

    assert (view["state"], view["cached"]) == ("succeeded", True)
    result, earlier = idle_fleet.result(second), idle_fleet.result(first)
    require_valid(result)
    assert {name: each for name, each in result.items() if name not in OWN} == {
        name: each for name, each in earlier.items() if name not in OWN
    }
    with idle_fleet.client as client:
        assert client.delete(f"/v1/documents/{first}").status_code == 204
        # What was counted last is told for a while.
        wait_for(
            "the document that was served to be counted",
            lambda: client.get("/v1/capacity").json()["cache"]["documents_cached"] == 1,
            timeout_s=TIMEOUT_S,
        )
        page = client.get(f"/v1/documents/{second}/pages/1").json()
    assert page["result"]["lines"]
