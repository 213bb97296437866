import json
from pathlib import Path

from bench.gpu_check import summary


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

    assert "- parity: did not end in its time" in text
    assert record["parity"] is None
