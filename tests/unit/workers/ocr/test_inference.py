from pathlib import Path
from types import SimpleNamespace

import pytest

from workers.ocr.errors import (
    InferenceError,
    OutOfMemoryError,
    PoisonedContextError,
    ProviderUnavailableError,
)
from workers.ocr.inference import (
    DeviceMemory,
    _open_session,
    available_devices,
    inference_error,
    provider_options,
)

OUT_OF_MEMORY = [
    "Failed to allocate memory for requested buffer of size 3221225472",
    "Available memory of 1024 is smaller than requested bytes of 4096",
    "BFCArena: Failed to find a free memory block despite calling Extend",
    "CUDA failure 2: out of memory ; GPU=0",
    "cudaErrorMemoryAllocation",
    "CUBLAS failure 3: CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
    "cudaMallocFromPoolAsync failed",
    "std::bad_alloc",
]
POISONED = [
    "CUDA failure 700: an illegal memory access was encountered",
    "CUDA failure 702: the launch timed out",
    "CUDA failure 709: context is destroyed",
    "CUDA failure 714: hardware stack error",
    "CUDA failure 719: unspecified launch failure",
    "CUDA failure 214: uncorrectable ECC error encountered",
    "CUDA failure 220: uncorrectable NVLink error",
    "misaligned address",
]


@pytest.mark.parametrize("message", OUT_OF_MEMORY)
def test_out_of_memory_is_recognized(message: str) -> None:
    assert type(inference_error(f"Non-zero status code returned: {message}")) is OutOfMemoryError


@pytest.mark.parametrize("message", POISONED)
def test_a_poisoned_context_is_recognized(message: str) -> None:
    assert type(inference_error(f"Non-zero status code returned: {message}")) is (
        PoisonedContextError
    )


@pytest.mark.parametrize(
    "message",
    ["Got invalid dimensions for input", "CUDA failure 7000", "CUDA failure 1: invalid argument"],
)
def test_anything_else_is_neither(message: str) -> None:
    assert type(inference_error(message)) is InferenceError


def test_a_poisoned_context_counts_more_than_the_allocation_that_failed_after_it() -> None:
    message = "CUDA failure 700: illegal memory access; Failed to find a free memory block"

    assert type(inference_error(message)) is PoisonedContextError


def test_what_the_runtime_said_is_not_repeated() -> None:
    assert "secret" not in str(inference_error("secret text of a document"))


@pytest.mark.parametrize(
    ("written", "devices"),
    [
        ("package_name = 'onnxruntime'\n__version__ = '1.31.1'\n", {"cpu"}),
        ("package_name = 'onnxruntime-gpu'\n__version__ = '1.31.1'\n", {"cpu", "cuda"}),
        ("package_name = 'onnxruntime'\ncuda_version = '13.0'\n", {"cpu", "cuda"}),
    ],
)
def test_a_runtime_computes_on_what_it_was_built_for(
    tmp_path: Path, written: str, devices: set[str]
) -> None:
    (tmp_path / "capi").mkdir()
    (tmp_path / "capi" / "build_and_package_info.py").write_text(written)

    assert available_devices(tmp_path) == devices


def test_a_runtime_that_does_not_say_what_it_was_built_for_computes_on_the_cpu(
    tmp_path: Path,
) -> None:
    assert available_devices(tmp_path) == {"cpu"}


TOO_LARGE = "Failed to allocate memory for requested buffer of size 99000000000000"


def test_a_request_for_more_than_the_device_has_is_corruption() -> None:
    error = inference_error(TOO_LARGE, memory_bytes=80_000_000_000)

    assert type(error) is PoisonedContextError


@pytest.mark.parametrize("memory_bytes", [None, 99_000_000_000_000])
def test_a_request_that_the_device_could_hold_is_out_of_memory(memory_bytes: int | None) -> None:
    assert type(inference_error(TOO_LARGE, memory_bytes=memory_bytes)) is OutOfMemoryError


def test_a_gpu_session_has_its_part_of_the_memory() -> None:
    memory = DeviceMemory(device_bytes=80_000, session_bytes=20_000)

    assert provider_options("cuda", memory)["gpu_mem_limit"] == "20000"
    assert "gpu_mem_limit" not in provider_options("cuda", None)
    assert provider_options("cpu", memory) == {}


class SilentlyFallenBack:
    """What onnxruntime returns when a provider fails to start and it takes the CPU instead."""

    def get_providers(self) -> list[str]:
        return ["CPUExecutionProvider"]


def test_a_silent_fallback_to_the_cpu_is_refused() -> None:
    asked: dict[str, object] = {}

    def session(*_: object, **arguments: object) -> SilentlyFallenBack:
        asked.update(arguments)
        return SilentlyFallenBack()

    with pytest.raises(ProviderUnavailableError, match="asked for CUDAExecutionProvider"):
        _open_session(
            SimpleNamespace(InferenceSession=session),  # type: ignore[arg-type]  what it uses
            b"",
            None,
            "cuda",
            name="model.onnx",
        )

    assert asked["enable_fallback"] == 0
