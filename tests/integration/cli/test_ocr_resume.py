"""A large folder is read in several runs, and a run may end at any moment."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cli.samples import Sample
from tests.support.commands import ROOT, run_pagefleet
from tests.support.models import require_bundle
from tests.support.processes import wait_until

FILES = 12


@pytest.fixture(scope="module")
def label(samples: dict[str, Sample]) -> Path:
    require_bundle()
    return samples["label.png"].path


@pytest.fixture
def archive(label: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "archive"
    for number in range(FILES):
        below = folder / f"box-{number % 2}"
        below.mkdir(parents=True, exist_ok=True)
        shutil.copy(label, below / f"{number}.png")
    return folder


def results(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.json"))


@contextmanager
def running_ocr(archive: Path, out_dir: Path) -> Iterator["subprocess.Popen[str]"]:
    """Lend a run that has written some of its results."""
    process = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-m", "cli", "ocr", str(archive), "-o", str(out_dir)],
        cwd=ROOT,
        env=dict(os.environ),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            wait_until(lambda: len(results(out_dir)) >= 2, timeout_s=60)
            yield process
        finally:
            process.kill()


def read_on(archive: Path, out_dir: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    return run_pagefleet("ocr", archive, "-o", out_dir, "--skip-existing", *options)


def texts(folder: Path) -> set[str]:
    return {json.loads(path.read_text("utf-8"))["full_text"] for path in results(folder)}


def test_a_killed_run_leaves_whole_results_and_the_next_one_reads_the_others(
    archive: Path, tmp_path: Path
) -> None:
    out_dir = tmp_path / "out"
    with running_ocr(archive, out_dir) as process:
        process.kill()
        process.wait()
    kept = {path: path.stat().st_mtime_ns for path in results(out_dir)}
    whole = texts(out_dir)

    done = read_on(archive, out_dir, "--json")

    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stderr
    assert 2 <= len(kept) < FILES
    assert len(records) == FILES - len(kept)
    assert len(results(out_dir)) == FILES
    assert texts(out_dir) == whole
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert f"{FILES} files: {len(records)} read, {len(kept)} skipped" in done.stderr


def test_ctrl_c_says_what_is_done_and_how_to_go_on(archive: Path, tmp_path: Path) -> None:
    out_dir = tmp_path / "out"
    with running_ocr(archive, out_dir) as process:
        process.send_signal(signal.SIGINT)
        _, notices = process.communicate(timeout=60)

    assert process.returncode == 130
    assert f"{len(results(out_dir))} read, " in notices
    assert "not begun" in notices
    assert "--skip-existing goes on from here" in notices
    assert "Traceback" not in notices
    assert list(out_dir.rglob(".pagefleet-*")) == []


def test_a_second_run_reads_only_what_failed_and_exits_with_1(
    samples: dict[str, Sample], archive: Path, tmp_path: Path
) -> None:
    for name in ("damaged.pdf", "encrypted.pdf"):
        shutil.copy(samples[name].path, archive / name)

    first = read_on(archive, tmp_path / "out")
    second = read_on(archive, tmp_path / "out")

    assert (first.returncode, second.returncode) == (1, 1)
    assert f"{FILES + 2} files: {FILES} read, 2 failed; " in first.stderr
    assert f"{FILES + 2} files: 2 failed, {FILES} skipped, their results are there; 0 pages" in (
        second.stderr
    )
    assert f"  damaged: 1 ({archive / 'damaged.pdf'})" in second.stderr
    assert "--password -" in second.stderr
    assert second.stdout == ""


def test_nothing_is_loaded_when_all_is_done(archive: Path, tmp_path: Path) -> None:
    read_on(archive, tmp_path / "out")

    done = run_pagefleet(
        *("ocr", archive, "-o", tmp_path / "out", "--skip-existing"),
        PAGEFLEET_MODELS_DIR=str(tmp_path / "none"),
    )

    assert done.returncode == 0, done.stderr
    assert f"{FILES} files: {FILES} skipped" in done.stderr


def test_without_the_option_all_is_read_again(label: Path, tmp_path: Path) -> None:
    records: list[dict[str, Any]] = []
    for _ in range(2):
        done = run_pagefleet("ocr", label, "-o", tmp_path, "--json")
        records += map(json.loads, done.stdout.splitlines())

    assert [record["state"] for record in records] == ["succeeded", "succeeded"]
