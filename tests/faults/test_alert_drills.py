"""Each drill brings about what an alert is for, and Prometheus itself reads it from real programs.

docs/runbook.md says what to do in each case; where a drill can do that, it does, and the alert
ends.
"""

from pathlib import Path

import httpx
import pytest
import redis

from bench.faults.kill_points import KillPoint, hook_environment
from cli.samples import Sample
from tests.support.fake_gpu import GIB, FakeGpu
from tests.support.fleet import Fleet, free_port, wait_for
from tests.support.prometheus import Prometheus, watching
from tests.support.scraped import scrape

# Starting a worker takes a minute on a machine that is very busy.
LIMIT_S = 300.0
TEN_MINUTES_S = 600
SLOTS_OF_AN_ALERT = 3
ONE_SLOT = ("worker", "--queues", "recognize", "--slots", "1")
# Not among the points of the other faults: each run of a model would depend on Redis there.
HANGS = {"inference": KillPoint("workers.ocr.inference:OnnxSession.run", "before")}

pytestmark = pytest.mark.timeout(900)


def start(fleet: Fleet, name: str, *arguments: str, **settings: str) -> int:
    """Start a program that shows its metrics; return its port."""
    port = free_port()
    fleet.start(name, *arguments, PAGEFLEET_METRICS_PORT=str(port), **settings)
    return port


def start_api(fleet: Fleet, **settings: str) -> int:
    port = start(fleet, "api", "api", **settings)
    fleet.wait_for_api()
    return port


def value_at(port: int, name: str, **labels: str) -> float | None:
    """Return what a program shows, without Prometheus."""
    return scrape(f"http://127.0.0.1:{port}").find(name, **labels)


def make_older(fleet: Fleet, *, by_s: int) -> None:
    """Let the documents have come so much earlier."""
    with fleet.database.transaction() as session:
        session.connection().exec_driver_sql(
            "UPDATE documents SET created_at = created_at - make_interval(secs => %s)", (by_s,)
        )


def test_a_document_that_waits_too_long_raises_an_alert_until_it_is_taken(
    idle_fleet: Fleet, samples: dict[str, Sample], tmp_path: Path
) -> None:
    port = start_api(idle_fleet)
    idle_fleet.submit(samples["letters.pdf"].path)
    # Before the first count, which the API goes by for ten seconds, and longer on a busy machine.
    make_older(idle_fleet, by_s=TEN_MINUTES_S)
    with watching([port], tmp_path / "prometheus") as prometheus:
        alert = prometheus.wait_for_alert("PagefleetInteractiveQueueTooOld", timeout_s=LIMIT_S)
        oldest_s = value_at(port, "pagefleet_queue_oldest_seconds", queue="split")
        # The remedy: a worker for the queue.
        idle_fleet.start("assembler", "worker", "--queues", "split", "--slots", "1")

        prometheus.wait_for_silence("PagefleetInteractiveQueueTooOld", timeout_s=LIMIT_S)

    assert (alert["queue"], alert["severity"]) == ("split", "critical")
    assert alert["runbook_url"] == "docs/runbook.md#pagefleetinteractivequeuetooold"
    assert oldest_s is not None
    assert oldest_s > TEN_MINUTES_S


def test_work_without_a_ready_worker_raises_an_alert_until_there_is_one(
    idle_fleet: Fleet, samples: dict[str, Sample], tmp_path: Path
) -> None:
    ports = [start_api(idle_fleet), free_port()]
    idle_fleet.submit(samples["letters.pdf"].path)
    with watching(ports, tmp_path / "prometheus") as prometheus:
        alert = prometheus.wait_for_alert("PagefleetNoReadySlot", timeout_s=LIMIT_S)

        idle_fleet.start(
            "assembler",
            *("worker", "--queues", "split,assemble", "--slots", "1"),
            PAGEFLEET_METRICS_PORT=str(ports[1]),
        )
        wait_for(
            "the alert for another queue",
            lambda: queue_of_alert(prometheus) == "recognize",
            timeout_s=LIMIT_S,
        )
        ready = value_at(ports[1], "pagefleet_ready_slots", queue="split")

    assert alert["queue"] == "split"
    assert "pages wait in the queue split" in alert["summary"]
    assert ready == 1


def queue_of_alert(prometheus: Prometheus) -> str:
    return prometheus.firing().get("PagefleetNoReadySlot", {}).get("queue", "")


def test_a_gpu_that_is_nearly_full_raises_an_alert_until_it_is_not(
    idle_fleet: Fleet, tmp_path: Path
) -> None:
    gpu = FakeGpu(tmp_path / "gpu.json")
    gpu.fill(40 * GIB)
    port = start(idle_fleet, "recognizer", *ONE_SLOT, **gpu.environment)
    with watching([port], tmp_path / "prometheus") as prometheus:
        prometheus.wait_for_scrapes(1)
        quiet = prometheus.firing()

        gpu.fill(76 * GIB)
        alert = prometheus.wait_for_alert("PagefleetGpuMemoryHigh", timeout_s=LIMIT_S)
        used_bytes = value_at(port, "pagefleet_gpu_memory_used_bytes", gpu="0")
        gpu.fill(40 * GIB)
        prometheus.wait_for_silence("PagefleetGpuMemoryHigh", timeout_s=LIMIT_S)

    assert "PagefleetGpuMemoryHigh" not in quiet
    assert (alert["gpu"], alert["instance"]) == ("0", f"127.0.0.1:{port}")
    assert "95% of its memory" in alert["summary"]
    assert used_bytes == 76 * GIB


def test_a_store_that_is_away_raises_an_alert(
    idle_fleet: Fleet, samples: dict[str, Sample], tmp_path: Path
) -> None:
    port = start_api(idle_fleet, PAGEFLEET_S3_ENDPOINT_URL=f"http://127.0.0.1:{free_port()}")
    with watching([port], tmp_path / "prometheus") as prometheus:
        prometheus.wait_for_scrapes(1)
        quiet = prometheus.firing()

        with idle_fleet.client as client:
            for _ in range(8):
                with samples["letters.pdf"].path.open("rb") as file:
                    answer = client.post("/v1/documents", files={"file": ("letters.pdf", file)})
                assert answer.status_code == httpx.codes.SERVICE_UNAVAILABLE, answer.text
        alert = prometheus.wait_for_alert("PagefleetStorageErrors", timeout_s=LIMIT_S)

    assert "PagefleetStorageErrors" not in quiet
    assert (alert["kind"], alert["severity"]) == ("unavailable", "critical")
    errors = value_at(port, "pagefleet_storage_errors_total", bucket="own", kind="unavailable")
    assert (errors or 0) >= 8


def test_inferences_that_hang_end_their_slots_and_raise_an_alert(
    idle_fleet: Fleet, samples: dict[str, Sample], tmp_path: Path, redis_url: str
) -> None:
    # As many slots as have to end: each hangs once, and no page has to be read again.
    port = start(
        idle_fleet,
        "recognizer",
        *("worker", "--queues", "recognize", "--slots", str(SLOTS_OF_AN_ALERT)),
        PAGEFLEET_INFERENCE_TIMEOUT_S="10",
        **hook_environment(redis_url, HANGS),
    )
    idle_fleet.start(
        "assembler",
        *("worker", "--queues", "split,assemble", "--slots", "1"),
        PAGEFLEET_CHUNK_PAGES="1",
    )
    start_api(idle_fleet)
    with watching([port], tmp_path / "prometheus") as prometheus:
        wait_for(
            "slots that Prometheus has seen",
            lambda: prometheus.query(f"sum(pagefleet_ready_slots) == {SLOTS_OF_AN_ALERT}"),
            timeout_s=LIMIT_S,
        )
        with redis.Redis.from_url(redis_url) as broker:
            broker.rpush("faults:inference", *["hang"] * SLOTS_OF_AN_ALERT)
        idle_fleet.submit(samples["scanned-letters.pdf"].path)

        alert = prometheus.wait_for_alert("PagefleetSlotsDie", timeout_s=LIMIT_S)
        hung = value_at(port, "pagefleet_slots_ended_total", reason="hung")

    assert samples["scanned-letters.pdf"].page_count >= SLOTS_OF_AN_ALERT
    assert alert["reason"] == "hung"
    assert (hung or 0) >= SLOTS_OF_AN_ALERT
