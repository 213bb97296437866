"""What a worker writes from its start to its end, its pool children included."""

import json
from pathlib import Path
from typing import Any

import pytest

from cli.samples import Sample
from tests.support.fleet import Fleet, wait_for

START_LIMIT_S = 60


def lines_of(fleet: Fleet, name: str) -> list[str]:
    return (fleet.logs / f"{name}.log").read_text("utf-8").splitlines()


def with_event(fleet: Fleet, name: str, event: str) -> list[str]:
    return [line for line in lines_of(fleet, name) if event in line]


@pytest.fixture
def lines(idle_fleet: Fleet, samples: dict[str, Sample]) -> list[str]:
    """The log of a worker that split a document and a file that is none, and was told to stop."""
    idle_fleet.start("api", "api")
    idle_fleet.start("splitter", "worker", "--queues", "split,assemble", "--slots", "1")
    idle_fleet.wait_for_api()
    for name in ("letters.pdf", "damaged.pdf"):
        idle_fleet.submit(samples[name].path)
    for event in ("document split", "work ended early"):
        wait_for(
            event,
            lambda event=event: with_event(idle_fleet, "splitter", event),  # type: ignore[misc]
            timeout_s=START_LIMIT_S,
        )
    idle_fleet.terminate("splitter")
    return lines_of(idle_fleet, "splitter")


def test_every_line_of_a_worker_is_one_json_event(lines: list[str]) -> None:
    records: list[dict[str, Any]] = [json.loads(line) for line in lines]

    events = " ".join(record["event"] for record in records)
    assert all({"event", "level", "logger", "timestamp"} <= record.keys() for record in records)
    for expected in ("worker starts", "slot ready", "document split", "shutdown (MainProcess)"):
        assert expected in events
    assert {"document_id", "task_id"} <= next(
        record.keys() for record in records if record["event"] == "document split"
    )


def test_no_line_of_a_worker_has_a_password_or_a_text(
    lines: list[str], idle_fleet: Fleet, samples: dict[str, Sample]
) -> None:
    written = "\n".join(lines)

    secret_names = ("DATABASE_URL", "REDIS_URL", "S3_SECRET_ACCESS_KEY")
    secrets = [idle_fleet.environment[f"PAGEFLEET_{name}"] for name in secret_names]
    passwords = [each.partition("://")[2].partition("@")[0].partition(":")[2] for each in secrets]
    hidden = [*secrets, *filter(None, passwords), Path(samples["letters.pdf"].path).name]
    assert len(hidden) == 6
    assert [each for each in hidden if each in written] == []
