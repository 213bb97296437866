"""Which device a slot computes on; decided before the runtime is imported."""

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Literal

import pynvml
import structlog

from workers.ocr.errors import ProviderUnavailableError
from workers.ocr.inference import available_devices

log = structlog.get_logger(__name__)

GPU_CHUNK_PAGES = 16
CPU_CHUNK_PAGES = 4

_VISIBLE = "CUDA_VISIBLE_DEVICES"

Wanted = Literal["auto", "cpu", "cuda"]


@dataclass(frozen=True, slots=True)
class Device:
    """Where the models run.

    Attributes:
        kind: of device.
        gpu_index: counts the GPUs that this worker may use, None on the CPU.
        gpu_count: of GPUs that the worker's slots are dealt out to.
    """

    kind: Literal["cpu", "cuda"]
    gpu_index: int | None = None
    gpu_count: int = 0


def count_gpus() -> int:
    """Count the NVIDIA GPUs that this process can compute on.

    0 without a driver, and with an onnxruntime that has no CUDA provider, whatever the driver
    shows.
    """
    return count_driver_gpus() if "cuda" in available_devices() else 0


def count_cores(cpu_max: Path = Path("/sys/fs/cgroup/cpu.max")) -> int:
    """Count the CPU cores that this process may use, at least 1.

    Args:
        cpu_max: the control group's quota, which a container's limit sets and the scheduler's
            affinity does not show.
    """
    cores = len(os.sched_getaffinity(0))
    try:
        quota_us, period_us = cpu_max.read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return cores
    if quota_us == "max":
        return cores
    return max(1, min(cores, int(quota_us) // int(period_us)))


def count_driver_gpus() -> int:
    """Count the GPUs that the driver shows to this process; 0 without a driver."""
    return len(visible_gpus(_given_visible(), _driver_gpu_ids()))


def visible_gpus(given: str | None, gpu_ids: Sequence[str]) -> list[str]:
    """Return the names of the GPUs that CUDA shows, each as ``CUDA_VISIBLE_DEVICES`` has it.

    Args:
        given: the variable's value, None when it is not set.
        gpu_ids: the driver's unique id of each GPU of the machine, by number.

    Source: CUDA C++ Programming Guide, "CUDA Environment Variables": the list ends at the first
    entry that names no device, so that ``-1`` hides all.
    """
    if given is None:
        return [str(number) for number in range(len(gpu_ids))]
    names = (name.strip() for name in given.split(","))
    return list(takewhile(lambda name: _is_gpu(name, gpu_ids), names))


def choose_device(
    wanted: Wanted, *, slot: int, gpu_count: int, runtime_devices: Collection[str] | None = None
) -> Device:
    """Choose a slot's device: GPUs are dealt out to slots in turn.

    Args:
        wanted: the setting.
        slot: the number of the slot in its worker, from 0.
        gpu_count: of ``count_gpus``.
        runtime_devices: what the runtime can compute on, None to ask it; gives the reason when
            there is no GPU to compute on.

    Raises:
        ProviderUnavailableError: a GPU is required and there is none. The CPU is never taken in
            silence: ``auto`` says so, and only ``cpu`` and ``auto`` allow it.
    """
    if wanted == "cpu":
        return Device("cpu")
    if gpu_count:
        return Device("cuda", slot % gpu_count, gpu_count)
    has_provider = "cuda" in (available_devices() if runtime_devices is None else runtime_devices)
    if wanted == "cuda" and not has_provider:
        raise ProviderUnavailableError(
            "PAGEFLEET_DEVICE=cuda, but the installed onnxruntime has no CUDA provider; install "
            "requirements/gpu.txt, or set PAGEFLEET_DEVICE=auto to run on the CPU"
        )
    if wanted == "cuda":
        raise ProviderUnavailableError(
            "PAGEFLEET_DEVICE=cuda, but the driver shows no GPU; "
            "check the driver, or set PAGEFLEET_DEVICE=auto to run on the CPU"
        )
    if has_provider:
        log.warning("no gpu found, running on the cpu")
    else:
        log.warning("onnxruntime has no cuda provider, running on the cpu")
    return Device("cpu")


@dataclass(frozen=True, slots=True)
class GpuMemory:
    """What a GPU has, and what all processes on it hold; in bytes."""

    total_bytes: int
    used_bytes: int


def gpu_memory_bytes() -> int | None:
    """Return the memory of the GPU that this process is pinned to; None when it cannot be told."""
    memory = _memory_of(_given_visible() or "")
    return None if memory is None else memory.total_bytes


def memory_of_gpus() -> list[GpuMemory]:
    """Return the memory of each GPU that the driver shows to this process, as far as it tells."""
    found = (_memory_of(name) for name in visible_gpus(_given_visible(), _driver_gpu_ids()))
    return [memory for memory in found if memory is not None]


def _memory_of(name: str) -> GpuMemory | None:
    """Return the memory of a GPU as ``CUDA_VISIBLE_DEVICES`` names it; None: it cannot be told."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    try:
        gpu = (
            pynvml.nvmlDeviceGetHandleByIndex(int(name))
            if name.isdigit()
            else pynvml.nvmlDeviceGetHandleByUUID(name)
        )
        memory = pynvml.nvmlDeviceGetMemoryInfo(gpu)
        return GpuMemory(int(memory.total), int(memory.used))
    except pynvml.NVMLError:
        return None
    finally:
        pynvml.nvmlShutdown()


def pin(device: Device) -> None:
    """Make this process see its own GPU only; call it before onnxruntime is imported.

    A slot on the CPU sees no GPU at all, so that nothing allocates on one by accident.
    """
    visible = "" if device.gpu_index is None else _visible_name(device.gpu_index)
    os.environ[_VISIBLE] = visible  # noqa: TID251 - CUDA reads nothing else


def _visible_name(gpu_index: int) -> str:
    """Return the name of a GPU under the restriction that the process already runs under."""
    given = _given_visible()
    return given.split(",")[gpu_index].strip() if given else str(gpu_index)


def _given_visible() -> str | None:
    return os.environ.get(_VISIBLE)  # noqa: TID251 - CUDA's own variable, which NVML ignores


def _is_gpu(name: str, gpu_ids: Sequence[str]) -> bool:
    if name.startswith("MIG-"):  # a part of a GPU; NVML lists GPUs only
        return bool(gpu_ids)
    if name.startswith("GPU-"):  # the beginning of an id is enough
        return any(gpu_id.startswith(name) for gpu_id in gpu_ids)
    return name.isascii() and name.isdigit() and int(name) < len(gpu_ids)


def _driver_gpu_ids() -> list[str]:
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return []
    try:
        return [
            str(pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(number)))
            for number in range(pynvml.nvmlDeviceGetCount())
        ]
    except pynvml.NVMLError:
        return []  # a driver that cannot name its GPUs computes on none of them
    finally:
        pynvml.nvmlShutdown()
