"""What ``pagefleet doctor`` looks at: each check returns findings, and each finding a remedy."""

import resource
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from workers.settings import OcrSettings

Level = Literal["ok", "warning", "failed"]

OLDEST_PYTHON = (3, 11)
_MIB = 2**20
_GIB = 2**30
# The models and an embedded stack's first data; below it Postgres stops taking writes soon.
_LEAST_DISK_BYTES = 2 * _GIB
# Three bytes a pixel; a slot shares two page images with its render child.
_BYTES_PER_PIXEL = 3
# Postgres, the broker, storage, models and pipes of one worker stay under it by far.
_LEAST_OPEN_FILES = 1024
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where Linux keeps shared memory, no temporary file


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        name: what it is.
        level: ``failed`` makes the doctor exit with 1, ``warning`` does not.
        detail: what was found.
        remedy: what to do; empty when all is well.
    """

    name: str
    level: Level
    detail: str
    remedy: str = ""


def check_python(running: tuple[int, ...] | None = None) -> Iterator[Finding]:
    """Look at the interpreter's version.

    Args:
        running: None for that of this process.
    """
    version_numbers = running or tuple(sys.version_info[:3])
    found = ".".join(map(str, version_numbers))
    if version_numbers < OLDEST_PYTHON:
        yield Finding(
            "Python", "failed", f"{found}, 3.11 or newer is needed", "Install a newer Python."
        )
    else:
        yield Finding("Python", "ok", found)


def check_runtime_distributions(
    version_of: Callable[[str], str | None] | None = None,
) -> Iterator[Finding]:
    """Look for the trap of two distributions that own the one package ``onnxruntime``.

    Args:
        version_of: returns the version of an installed distribution, None when it is not there.
    """
    find = version_of or installed_version
    found = {name: find(name) for name in ("onnxruntime", "onnxruntime-gpu")}
    present = [f"{name} {number}" for name, number in found.items() if number is not None]
    if not present:
        yield Finding(
            "onnxruntime",
            "failed",
            "not installed",
            "Install requirements/cpu.txt or requirements/gpu.txt.",
        )
    elif len(present) > 1:
        yield Finding(
            "onnxruntime",
            "failed",
            f"{' and '.join(present)} are both installed; one has overwritten the other",
            "Uninstall both, then install the one you need: pip uninstall -y onnxruntime"
            " onnxruntime-gpu; pip install --require-hashes -r requirements/gpu.txt (or cpu.txt)",
        )
    else:
        yield Finding("onnxruntime", "ok", present[0])


def check_pdf_reader(
    version_of: Callable[[str], str | None] | None = None,
) -> Iterator[Finding]:
    """Look at PyMuPDF: 2.x requires onnxruntime, and older ones have known holes."""
    found = (version_of or installed_version)("pymupdf")
    remedy = "Install the locked version: pip install --require-hashes -r requirements/cpu.txt"
    if found is None:
        yield Finding("PyMuPDF", "failed", "not installed", remedy)
    elif not (1, 28, 2) <= _numbers(found) < (2,):
        yield Finding("PyMuPDF", "failed", f"{found}, expected at least 1.28.2 and below 2", remedy)
    else:
        yield Finding("PyMuPDF", "ok", found)


def check_models(settings: OcrSettings) -> Iterator[Finding]:
    """Look at every file of the model bundle, and at its hash."""
    from workers.ocr.errors import OcrError
    from workers.ocr.profiles import open_profile

    try:
        bundle = open_profile(settings.profile, settings.models_dir)
    except OcrError as error:
        yield Finding(
            "Models",
            "failed",
            str(error),
            "`pagefleet models fetch` gets the missing ones; docs/models.md tells about your own.",
        )
    else:
        yield Finding("Models", "ok", f"{bundle.model_version} in {bundle.models_dir}")


def check_device(settings: OcrSettings) -> Iterator[Finding]:
    """Load a model on the device that the settings ask for."""
    from workers.devices import choose_device, count_driver_gpus, count_gpus, pin
    from workers.ocr.errors import OcrError
    from workers.ocr.graph_preparation import Preparation
    from workers.ocr.inference import OnnxSession
    from workers.ocr.profiles import find_profile

    gpu_count = count_gpus()
    idle_gpus = count_driver_gpus() - gpu_count
    try:
        device = choose_device(settings.device, slot=0, gpu_count=gpu_count)
        pin(device)
        manifest, folder = find_profile(settings.profile, settings.models_dir)
        preparation = Preparation(manifest.detection.normalization)
        OnnxSession(folder / manifest.detection.file.name, preparation, device=device.kind)
    except OcrError as error:
        yield Finding(
            "Device",
            "failed",
            str(error),
            "PAGEFLEET_DEVICE=cpu runs without a GPU; a GPU needs requirements/gpu.txt and a driver"
            " that serves CUDA 13.",
        )
        return
    if idle_gpus and settings.device != "cpu":
        yield Finding(
            "Device",
            "warning",
            f"{device.kind}; the driver shows {idle_gpus} GPUs, and this onnxruntime uses none",
            "Install requirements/gpu.txt in place of cpu.txt, or set PAGEFLEET_DEVICE=cpu.",
        )
    else:
        yield Finding("Device", "ok", f"{device.kind}; GPUs in use: {gpu_count}")


def check_limits(settings: OcrSettings) -> Iterator[Finding]:
    """Look at the limits that the system puts on this user."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files != resource.RLIM_INFINITY and files < _LEAST_OPEN_FILES:
        yield Finding(
            "Open files",
            "failed",
            f"{files} allowed, {_LEAST_OPEN_FILES} needed",
            f"Raise it: ulimit -n {_LEAST_OPEN_FILES}, or LimitNOFILE= of the service.",
        )
    else:
        yield Finding("Open files", "ok", f"{files} allowed")
    memory, _ = resource.getrlimit(resource.RLIMIT_AS)
    if memory != resource.RLIM_INFINITY and memory < settings.render_memory_bytes:
        yield Finding(
            "Address space",
            "failed",
            f"limited to {_in_mib(memory)}, a render child may use"
            f" {_in_mib(settings.render_memory_bytes)}",
            "Lift the limit (ulimit -v unlimited) or lower PAGEFLEET_RENDER_MEMORY_BYTES.",
        )


def check_space(settings: OcrSettings) -> Iterator[Finding]:
    """Look at free disk under the home folder and at free shared memory."""
    home = settings.home
    while not home.exists():
        home = home.parent
    free = shutil.disk_usage(home).free
    yield _space_finding(
        "Disk",
        free,
        wanted=_LEAST_DISK_BYTES,
        place=settings.home,
        remedy="Free some, or put PAGEFLEET_HOME on a larger disk.",
    )
    if _SHARED_MEMORY.exists():
        yield _space_finding(
            "Shared memory",
            shutil.disk_usage(_SHARED_MEMORY).free,
            wanted=2 * _BYTES_PER_PIXEL * settings.render_max_pixels,
            place=_SHARED_MEMORY,
            remedy="Give a container more (--shm-size=2g, or an emptyDir of medium Memory), or"
            " lower PAGEFLEET_RENDER_MAX_PIXELS.",
        )


def installed_version(distribution: str) -> str | None:
    """Return the version of an installed distribution, None when it is not there."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _space_finding(name: str, free: int, *, wanted: int, place: Path, remedy: str) -> Finding:
    if free < wanted:
        return Finding(
            name, "warning", f"{_in_mib(free)} free in {place}, {_in_mib(wanted)} wanted", remedy
        )
    return Finding(name, "ok", f"{_in_mib(free)} free in {place}")


def _numbers(version_text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version_text.split(".") if part.isdecimal())


def _in_mib(size_bytes: int) -> str:
    return f"{size_bytes // _MIB:,} MiB"
