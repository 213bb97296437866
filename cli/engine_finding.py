"""What ``pagefleet doctor`` says of the engine: which one reads here, and why not a faster one."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from cli.findings import Finding
from workers.settings import OcrSettings

_NAME: Final = "Engine"
_CPU_INFO: Final = Path("/proc/cpuinfo")
# As Linux names them: AVX512-BF16 and AMX.
_BFLOAT16_FLAGS: Final = frozenset({"avx512_bf16", "amx_bf16"})
_INSTALL: Final = "pip install --require-hashes -r requirements/openvino.txt"


def check_engine(
    settings: OcrSettings,
    *,
    device: str,
    is_installed: Callable[[], bool] | None = None,
    multiplies_bfloat16: Callable[[], bool] | None = None,
) -> Iterator[Finding]:
    """Say what the setting comes to; nothing is loaded.

    A precision below fp32 has to read a known page when models are loaded, and gives way to the
    next one where it cannot.

    Args:
        settings: of this process.
        device: ``cpu`` or ``cuda``, as it was chosen.
        is_installed: whether OpenVINO is; None to look.
        multiplies_bfloat16: whether the processor does, in hardware; None to look.
    """
    from workers.ocr import inference_openvino

    installed = (is_installed or inference_openvino.is_installed)()
    has_bfloat16 = (multiplies_bfloat16 or _processor_multiplies_bfloat16)()
    if settings.engine == "openvino":
        yield _openvino(device=device, installed=installed, has_bfloat16=has_bfloat16)
    elif settings.engine == "onnxruntime":
        yield Finding(_NAME, "ok", "onnxruntime, fp32: PAGEFLEET_ENGINE=onnxruntime")
    elif device != "cpu":
        yield Finding(_NAME, "ok", "onnxruntime, fp32: auto takes it beside a GPU")
    elif not has_bfloat16:
        yield Finding(
            _NAME,
            "ok",
            "onnxruntime, fp32: auto takes OpenVINO only where the processor multiplies bfloat16",
        )
    elif not installed:
        yield Finding(
            _NAME,
            "warning",
            "onnxruntime, fp32: this processor multiplies bfloat16, with which OpenVINO reads"
            " faster, but OpenVINO is not installed",
            f"Install it: {_INSTALL}; or set PAGEFLEET_ENGINE=onnxruntime.",
        )
    else:
        yield Finding(
            _NAME,
            "ok",
            "openvino, bf16: it is installed, and this processor multiplies bfloat16",
        )


def has_flag(cpu_info: str) -> bool:
    """Tell whether a processor's flags name bfloat16.

    Args:
        cpu_info: as ``/proc/cpuinfo`` has it.
    """
    return any(
        not _BFLOAT16_FLAGS.isdisjoint(line.partition(":")[2].split())
        for line in cpu_info.splitlines()
        if line.startswith("flags")
    )


def _processor_multiplies_bfloat16() -> bool:
    try:
        return has_flag(_CPU_INFO.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return False  # no Linux: nothing is promised


def _openvino(*, device: str, installed: bool, has_bfloat16: bool) -> Finding:
    if not installed:
        return Finding(
            _NAME,
            "failed",
            "PAGEFLEET_ENGINE=openvino, and OpenVINO is not installed",
            f"Install it: {_INSTALL}; or set PAGEFLEET_ENGINE=auto.",
        )
    if device != "cpu":
        return Finding(
            _NAME,
            "failed",
            "PAGEFLEET_ENGINE=openvino runs on the CPU only, and the device is a GPU",
            "Set PAGEFLEET_DEVICE=cpu, or PAGEFLEET_ENGINE=auto.",
        )
    precision = "bf16" if has_bfloat16 else "fp32"
    return Finding(_NAME, "ok", f"openvino, {precision}: PAGEFLEET_ENGINE=openvino")
