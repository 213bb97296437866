"""Which device a slot computes on; decided before the runtime is imported."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pynvml
import structlog

from workers.ocr.errors import ProviderUnavailableError

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
    """Count the NVIDIA GPUs that this process may use; 0 without a driver."""
    given = os.environ.get(_VISIBLE)  # noqa: TID251 - CUDA's own variable, which NVML ignores
    if given is not None:
        return len([name for name in given.split(",") if name])
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return 0
    try:
        return int(pynvml.nvmlDeviceGetCount())
    finally:
        pynvml.nvmlShutdown()


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


def choose_device(wanted: Wanted, *, slot: int, gpu_count: int) -> Device:
    """Choose a slot's device: GPUs are dealt out to slots in turn.

    Raises:
        ProviderUnavailableError: a GPU is required and there is none. The CPU is never taken in
            silence: ``auto`` says so, and only ``cpu`` and ``auto`` allow it.
    """
    if wanted == "cpu":
        return Device("cpu")
    if gpu_count:
        return Device("cuda", slot % gpu_count, gpu_count)
    if wanted == "cuda":
        raise ProviderUnavailableError(
            "PAGEFLEET_DEVICE=cuda, but the driver shows no GPU; "
            "check the driver, or set PAGEFLEET_DEVICE=auto to run on the CPU"
        )
    log.warning("no gpu found, running on the cpu")
    return Device("cpu")


def gpu_memory_bytes() -> int | None:
    """Return the memory of the GPU that this process is pinned to; None when it cannot be told."""
    name = os.environ.get(_VISIBLE, "")  # noqa: TID251 - CUDA's own variable
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
        return int(pynvml.nvmlDeviceGetMemoryInfo(gpu).total)
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
    given = os.environ.get(_VISIBLE)  # noqa: TID251 - CUDA's own variable
    return given.split(",")[gpu_index] if given else str(gpu_index)
