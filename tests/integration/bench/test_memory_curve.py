"""The memory curve on real processes, engine and render child, with the real models."""

from pathlib import Path

import pytest

from bench.memory import Reading, memory_curve
from cli.samples import write_long_document
from tests.support.models import require_bundle
from workers.settings import project_environment


@pytest.fixture
def document(tmp_path: Path) -> Path:
    require_bundle()
    write_long_document(tmp_path / "long.pdf", 3)
    return tmp_path / "long.pdf"


def test_both_processes_are_watched_to_the_last_page(document: Path) -> None:
    told: list[int] = []

    samples = memory_curve(
        [document], 4, Reading("balanced", "cpu", project_environment()), on_pages=told.append
    )

    assert told == [1, 2, 3, 4]
    assert samples[-1]["pages_failed"] == 0
    assert min(sample["engine_bytes"] for sample in samples) > 0
    assert min(sample["render_child_bytes"] for sample in samples) > 0


def test_a_time_limit_leaves_what_was_measured(document: Path) -> None:
    reading = Reading("balanced", "cpu", project_environment(), time_limit_s=0.1)

    samples = memory_curve([document], 1_000, reading, on_pages=lambda _done: None)

    assert 0 < samples[-1]["pages"] < 1_000
