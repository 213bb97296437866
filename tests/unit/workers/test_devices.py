import os
from pathlib import Path

import pynvml
import pytest
from structlog.testing import capture_logs

from workers.devices import (
    Device,
    choose_device,
    count_cores,
    gpu_memory_bytes,
    pin,
    visible_gpus,
)
from workers.ocr.errors import ProviderUnavailableError


def test_gpus_are_dealt_out_to_slots_in_turn() -> None:
    devices = [choose_device("auto", slot=slot, gpu_count=2) for slot in range(4)]

    assert [device.gpu_index for device in devices] == [0, 1, 0, 1]


def test_a_slot_without_a_gpu_runs_on_the_cpu_when_it_may() -> None:
    assert choose_device("auto", slot=0, gpu_count=0) == Device("cpu")


def test_a_runtime_without_the_provider_is_said_to_be_the_reason_for_the_cpu() -> None:
    with capture_logs() as lines:
        device = choose_device("auto", slot=0, gpu_count=0, runtime_devices={"cpu"})

    assert device == Device("cpu")
    assert [line["event"] for line in lines] == [
        "onnxruntime has no cuda provider, running on the cpu"
    ]


def test_a_required_gpu_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ProviderUnavailableError, match="driver shows no GPU"):
        choose_device("cuda", slot=0, gpu_count=0, runtime_devices={"cpu", "cuda"})


def test_a_required_gpu_that_the_runtime_cannot_use_is_an_error_of_the_installation() -> None:
    with pytest.raises(ProviderUnavailableError, match=r"requirements/gpu\.txt"):
        choose_device("cuda", slot=0, gpu_count=0, runtime_devices={"cpu"})


def test_the_cpu_is_taken_when_asked_for_although_there_is_a_gpu() -> None:
    assert choose_device("cpu", slot=0, gpu_count=8) == Device("cpu")


def test_a_pinned_slot_sees_its_own_gpu_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")  # registers its own undoing
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")

    pin(Device("cuda", 1))

    assert os.environ["CUDA_VISIBLE_DEVICES"] == "1"


def test_a_slot_on_the_cpu_sees_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")

    pin(Device("cpu"))

    assert os.environ["CUDA_VISIBLE_DEVICES"] == ""


def test_a_restriction_of_the_whole_worker_holds_for_its_slots(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3, GPU-7")

    pin(Device("cuda", 1))

    assert os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-7"


@pytest.mark.parametrize(
    ("given", "visible"),
    [
        (None, ["0", "1"]),
        ("1", ["1"]),
        ("1, 0", ["1", "0"]),
        ("GPU-8a", ["GPU-8a"]),
        ("MIG-5", ["MIG-5"]),
        ("", []),
        ("-1", []),
        ("NoDevFiles", []),
        ("0,2,1", ["0"]),  # CUDA ends the list at what names no GPU
        ("1,GPU-none,0", ["1"]),
    ],
)
def test_gpus_are_counted_as_cuda_counts_them(given: str | None, visible: list[str]) -> None:
    assert visible_gpus(given, ["GPU-8a41", "GPU-c0ff"]) == visible


@pytest.mark.parametrize("given", [None, "0", "0,1", "GPU-8a41", "MIG-5"])
def test_no_gpu_is_counted_without_a_driver(given: str | None) -> None:
    assert visible_gpus(given, []) == []


@pytest.mark.parametrize(
    ("quota", "cores"),
    [("200000 100000", 2), ("max 100000", 4), ("50000 100000", 1), ("900000 100000", 4), ("", 4)],
)
def test_a_containers_quota_bounds_the_cores(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, quota: str, cores: int
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2, 3})
    cpu_max = tmp_path / "cpu.max"
    cpu_max.write_text(quota)

    assert count_cores(cpu_max) == cores


def test_without_a_quota_the_affinity_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 5, 7})

    assert count_cores(tmp_path / "none") == 3


def test_without_a_driver_no_gpus_memory_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    monkeypatch.setattr("pynvml.nvmlInit", raise_no_driver)

    assert gpu_memory_bytes() is None


def raise_no_driver() -> None:
    raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)
