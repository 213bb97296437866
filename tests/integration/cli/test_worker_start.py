"""What a worker looks at before it starts; none of these needs a server."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.commands import run_pagefleet

Start = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Starts a worker on a machine without models."""

    def start(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        configured = {
            "PAGEFLEET_DATABASE_URL": "postgresql://h/d",
            "PAGEFLEET_REDIS_URL": "redis://h",
            "PAGEFLEET_S3_BUCKET": "b",
            "PAGEFLEET_DEVICE": "cpu",
            "PAGEFLEET_MODELS_DIR": str(tmp_path),
        }
        return run_pagefleet("worker", *arguments, **configured | environment)

    return start


def test_a_worker_without_models_does_not_start(start: Start) -> None:
    refused = start()

    assert refused.returncode == 2
    assert "pagefleet models fetch" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_worker_with_wrong_models_does_not_start(start: Start, tmp_path: Path) -> None:
    (tmp_path / "PP-OCRv6_det_small.onnx").write_bytes(b"something else")

    refused = start("--queues", "split,recognize")

    assert refused.returncode == 2
    assert "SHA-256" in refused.stderr


def test_a_worker_without_its_required_gpu_does_not_start(start: Start) -> None:
    refused = start(PAGEFLEET_DEVICE="cuda", CUDA_VISIBLE_DEVICES="-1")

    assert refused.returncode == 2
    assert "PAGEFLEET_DEVICE=cuda" in refused.stderr
    assert "PAGEFLEET_DEVICE=auto" in refused.stderr
