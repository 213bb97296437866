import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.gpu_check import _write_runs, summary
from tests.support.commands import ROOT


def write(folder: Path, name: str, record: object) -> None:
    (folder / f"{name}.json").write_text(json.dumps(record))


def test_the_report_tells_what_each_step_found(tmp_path: Path) -> None:
    write(
        tmp_path,
        "provider",
        {
            "device": "cuda",
            "gpus": ["0, A100"],
            "nodes": {"detection": {"CUDAExecutionProvider": 9}},
            "ok": True,
        },
    )
    write(
        tmp_path,
        "throughput",
        {
            "ok": True,
            "runs": [
                {
                    "profile": "fast",
                    "slots": 4,
                    "pages_per_s": 50.0,
                    "cpu_s_per_page": 0.05,
                    "share_of_dense_floor": 0.42,
                    "failed": 0,
                }
            ],
        },
    )

    _, text = summary(tmp_path)

    assert "- device cuda, GPUs: 0, A100" in text
    assert "| fast | 4 | 50.00 | 0.050 | 42.0% | 0 |" in text


def test_a_step_that_did_not_end_is_named(tmp_path: Path) -> None:
    record, text = summary(tmp_path)

    assert "- parity: did not end, see parity.log" in text
    assert record["parity"] is None


def test_what_was_measured_stands_where_the_next_run_did_not_end(tmp_path: Path) -> None:
    def runs() -> Iterator[dict[str, object]]:
        yield {
            "profile": "fast",
            "pages": 9,
            "lines": 80,
            "changed_lines": 0,
            "mean_cer": 0.0,
            "ok": True,
        }
        raise TimeoutError

    with pytest.raises(TimeoutError):
        _write_runs(tmp_path / "parity.json", runs())

    _, text = summary(tmp_path)
    assert "- fast, CPU and device: 0 of 80 lines differ on 9 pages" in text
    assert "- parity: did not end, see parity.log" in text


@pytest.mark.parametrize(("failed", "is_ok"), [(0, True), (1, False)])
def test_a_page_that_failed_makes_the_throughput_not_well(
    tmp_path: Path, failed: int, *, is_ok: bool
) -> None:
    record = _write_runs(tmp_path / "throughput.json", iter([{"failed": failed}, {"failed": 0}]))

    assert record["ok"] is is_ok
    assert json.loads((tmp_path / "throughput.json").read_text())["is_whole"]


@pytest.mark.parametrize("step", ["parity", "throughput"])
def test_nothing_is_well_without_documents(tmp_path: Path, step: str) -> None:
    (tmp_path / "documents").mkdir()

    done = subprocess.run(  # noqa: S603 - our own program
        [
            *(sys.executable, "-m", "bench.gpu_check", step, "--device", "cpu"),
            *("--documents", tmp_path / "documents", "--out", tmp_path),
        ],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )

    assert done.returncode == 1
    assert "can be read" in done.stderr
    assert not (tmp_path / f"{step}.json").exists()
