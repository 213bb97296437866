import os
from pathlib import Path

import pynvml
import pytest

from workers.devices import Device, choose_device, count_cores, count_gpus, gpu_memory_bytes, pin
from workers.ocr.errors import ProviderUnavailableError


def test_gpus_are_dealt_out_to_slots_in_turn() -> None:
    devices = [choose_device("auto", slot=slot, gpu_count=2) for slot in range(4)]

    assert [device.gpu_index for device in devices] == [0, 1, 0, 1]


def test_a_slot_without_a_gpu_runs_on_the_cpu_when_it_may() -> None:
    assert choose_device("auto", slot=0, gpu_count=0) == Device("cpu")


def test_a_required_gpu_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ProviderUnavailableError, match="PAGEFLEET_DEVICE=auto"):
        choose_device("cuda", slot=0, gpu_count=0)


def test_the_cpu_is_taken_when_asked_for_although_there_is_a_gpu() -> None:
    assert choose_device("cpu", slot=0, gpu_count=8) == Device("cpu")


def test_a_pinned_slot_sees_its_own_gpu_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    pin(Device("cuda", 1))

    assert os.environ["CUDA_VISIBLE_DEVICES"] == "1"


def test_a_slot_on_the_cpu_sees_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")

    pin(Device("cpu"))

    assert os.environ["CUDA_VISIBLE_DEVICES"] == ""


def test_a_restriction_of_the_whole_worker_holds_for_its_slots(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,GPU-7")

    count = count_gpus()
    pin(Device("cuda", 1))

    assert (count, os.environ["CUDA_VISIBLE_DEVICES"]) == (2, "GPU-7")


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
