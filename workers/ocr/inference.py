"""The only door to onnxruntime.

The library is imported inside functions: a worker chooses its device through the environment
before the first import. Its errors stop here; out of memory and a corrupt device context are
told apart by message, because their classes changed between versions.
"""

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from workers.ocr.errors import (
    InferenceError,
    ModelFileError,
    OutOfMemoryError,
    PoisonedContextError,
    ProviderUnavailableError,
)
from workers.ocr.graph_preparation import Preparation, prepared_model

Device = Literal["cpu", "cuda"]

_PROVIDERS: Final[dict[Device, str]] = {
    "cpu": "CPUExecutionProvider",
    "cuda": "CUDAExecutionProvider",
}
# HEURISTIC needs fixed shapes, which the width buckets of recognition give. The arena grows by
# what is asked, not by doubling, so that two sessions can share one card.
_CUDA_OPTIONS: Final[dict[str, str]] = {
    "arena_extend_strategy": "kSameAsRequested",
    "cudnn_conv_algo_search": "HEURISTIC",
    "do_copy_in_default_stream": "1",
    "use_tf32": "1",
}
# Messages of onnxruntime's BFC arena, the CUDA runtime, cuBLAS, cuDNN and the C++ library.
_OUT_OF_MEMORY: Final = re.compile(
    r"Failed to allocate memory for requested buffer of size"
    r"|Available memory of \d+ is smaller than requested bytes of"
    r"|Failed to find a free memory block"
    r"|CUDA failure 2: out of memory"
    r"|cudaErrorMemoryAllocation"
    r"|CUBLAS_STATUS_ALLOC_FAILED"
    r"|CUDNN_STATUS_ALLOC_FAILED"
    r"|cudaMallocFromPoolAsync failed"
    r"|std::bad_alloc"
    r"|bad allocation"
)
_REQUESTED_BYTES: Final = re.compile(r"(?:buffer of size|requested bytes of) (\d+)")
_POISONED: Final = re.compile(
    r"CUDA failure (?:214|220|700|702|709|71[4-9])\b"
    r"|illegal memory access"
    r"|unspecified launch failure"
    r"|misaligned address"
    r"|uncorrectable ECC"
)


# Both models take inputs whose free sides are multiples of this.
_SMALLEST_SIDE: Final = 32


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """What a device has, and how much of it one session's arena may take, in bytes."""

    device_bytes: int
    session_bytes: int


class Session(Protocol):
    """One model that is ready to run; tests and other runtimes bring their own.

    On a CPU several threads may run it at once; on CUDA one thread owns it.
    """

    def run(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        """Run one minibatch.

        Args:
            batch: (N, 3, H, W) float32 as the model wants it.

        Returns:
            The model's first output.

        Raises:
            OutOfMemoryError: the runtime could not allocate; the session can still be used.
            PoisonedContextError: nothing in this process can be trusted any more.
            InferenceError: any other failure.
        """
        ...


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What a model file says about itself.

    Attributes:
        metadata: the file's own key-value pairs.
        output_class_count: size of the first output's last axis, None when it is not fixed.
    """

    metadata: Mapping[str, str]
    output_class_count: int | None


class OnnxSession:
    """A model on one device; several threads may run it at once on a CPU, one on CUDA."""

    def __init__(
        self,
        model_path: Path,
        *,
        device: Device = "cpu",
        threads: int = 1,
        cpu_arena_limit_bytes: int | None = None,
        memory: DeviceMemory | None = None,
        preparation: Preparation = "plain",
        cache_dir: Path | None = None,
    ) -> None:
        """Load a model and prove that it runs on the device that was asked for.

        Args:
            model_path: an ONNX file.
            device: where it runs; there is no silent change to another.
            threads: CPU threads of one run.
            cpu_arena_limit_bytes: most memory that the CPU arena may hold, all sessions with a
                limit together; None for no limit.
            memory: of the device and this session's part of it; None for no limit.
            preparation: of the graph; see ``graph_preparation.prepared_model``.
            cache_dir: for prepared graphs, None for no cache.

        A missing or unreadable file is a ``ModelFileError``, a device that is not there a
        ``ProviderUnavailableError``, any other failure an ``InferenceError``.
        """
        ort = _runtime(device)
        graph = prepared_model(model_path, cache_dir=cache_dir, preparation=preparation)
        options = _session_options(ort, threads=threads)
        if cpu_arena_limit_bytes is not None:
            _limit_cpu_arena(ort, cpu_arena_limit_bytes)
            options.add_session_config_entry("session.use_env_allocators", "1")
        self._device: Final = device
        self._memory_bytes = None if memory is None else memory.device_bytes
        self._new_run_options: Final = ort.RunOptions
        self._session = _open_session(
            ort,
            graph,
            options,
            device,
            name=model_path.name,
            provider_options=provider_options(device, memory),
        )
        self._input_name: str = self._session.get_inputs()[0].name
        self._input_shape = self._session.get_inputs()[0].shape
        self._output_name: str = self._session.get_outputs()[0].name

    def run(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        return self._run(batch, None)

    def shrink(self) -> None:
        """Give the arena's unused memory back.

        The runtime does so only at the end of a run, so the smallest input is run.
        """
        options = self._new_run_options()
        arena = "gpu:0" if self._device == "cuda" else "cpu:0"
        options.add_run_config_entry("memory.enable_memory_arena_shrinkage", arena)
        sides = [side if isinstance(side, int) else _SMALLEST_SIDE for side in self._input_shape]
        self._run(np.zeros((1, *sides[1:]), dtype=np.float32), options)

    def _run(
        self,
        batch: NDArray[np.float32],
        options: Any,  # noqa: ANN401  onnxruntime is untyped
    ) -> NDArray[np.float32]:
        with _translated_errors(memory_bytes=self._memory_bytes):
            output: NDArray[np.float32] = self._session.run(
                [self._output_name], {self._input_name: batch}, options
            )[0]
        return output


def provider_options(device: Device, memory: DeviceMemory | None) -> dict[str, str]:
    """Return the options of the device's execution provider."""
    if device == "cpu":
        return {}
    limit = {} if memory is None else {"gpu_mem_limit": str(memory.session_bytes)}
    return {**_CUDA_OPTIONS, **limit}


def read_model_facts(model_path: Path) -> ModelFacts:
    """Read a model's metadata and output size.

    Raises:
        ModelFileError: the file is missing or no model.
    """
    ort = _runtime("cpu")
    options = _session_options(ort, threads=1)
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    if not model_path.is_file():
        raise ModelFileError(
            f"model file {model_path.name} is missing; run `pagefleet models fetch`"
        )
    session = _open_session(ort, str(model_path), options, "cpu", name=model_path.name)
    last_axis = session.get_outputs()[0].shape[-1]
    return ModelFacts(
        metadata=dict(session.get_modelmeta().custom_metadata_map),
        output_class_count=last_axis if isinstance(last_axis, int) else None,
    )


def inference_error(message: str, *, memory_bytes: int | None = None) -> InferenceError:
    """Sort a failure of the runtime by its message.

    A poisoned context is looked for first: after one, allocations fail too. A request for more
    than the device has was never asked for by a minibatch: a size was read from broken memory.

    Args:
        message: of the runtime.
        memory_bytes: that the whole device has, None when unknown.
    """
    if _POISONED.search(message):
        return PoisonedContextError("the device's context is corrupt; this process must end")
    requested = _REQUESTED_BYTES.search(message)
    if requested and memory_bytes is not None and int(requested[1]) > memory_bytes:
        return PoisonedContextError("the runtime asked for more memory than the device has")
    if _OUT_OF_MEMORY.search(message):
        return OutOfMemoryError("the runtime could not allocate memory for a minibatch")
    return InferenceError("the runtime failed on a minibatch")


def _runtime(device: Device) -> ModuleType:
    if device not in _PROVIDERS:
        raise ProviderUnavailableError(f"device is cpu or cuda, got {device!r}")
    import onnxruntime as ort  # noqa: PLC0415 - the device is pinned before the first import

    if device == "cuda":
        if _PROVIDERS["cuda"] not in ort.get_available_providers():
            raise ProviderUnavailableError(
                "this onnxruntime has no CUDA provider; install the extra `gpu` instead of `cpu`,"
                " or choose the device cpu"
            )
        # cuBLAS and cuDNN come as wheels, which the loader does not find by itself.
        ort.preload_dlls()
    module: ModuleType = ort
    return module


def _session_options(ort: ModuleType, *, threads: int) -> Any:  # noqa: ANN401  onnxruntime is untyped
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # A plan of allocations per input shape grows without end when widths change.
    options.enable_mem_pattern = False
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.use_device_allocator_for_initializers", "1")
    return options


def _open_session(
    ort: ModuleType,
    graph: bytes | str,
    options: Any,  # noqa: ANN401  onnxruntime is untyped
    device: Device,
    *,
    name: str,
    provider_options: Mapping[str, str] | None = None,
) -> Any:  # noqa: ANN401  onnxruntime is untyped
    wanted = _PROVIDERS[device]
    providers = [(wanted, dict(provider_options or {}))]
    with _translated_errors(name):
        session = ort.InferenceSession(graph, options, providers=providers, enable_fallback=0)
    running = session.get_providers()[0]
    if running != wanted:
        raise ProviderUnavailableError(
            f"asked for {wanted}, but {running} runs; check the driver, or choose the device cpu"
        )
    return session


def _limit_cpu_arena(ort: ModuleType, limit_bytes: int) -> None:
    memory = ort.OrtMemoryInfo(
        "Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT
    )
    arena = ort.OrtArenaCfg({"max_mem": limit_bytes, "arena_extend_strategy": 1})
    with _translated_errors():
        ort.create_and_register_allocator(memory, arena)


@contextlib.contextmanager
def _translated_errors(
    model_name: str | None = None, *, memory_bytes: int | None = None
) -> Iterator[None]:
    """Raise the runtime's errors as ours.

    Args:
        model_name: of the file that is being opened, for the message.
        memory_bytes: see ``inference_error``.

    Raises:
        ModelFileError: the file is no model.
    """
    from onnxruntime.capi import (  # noqa: PLC0415 - the device is pinned before the first import
        onnxruntime_pybind11_state as state,
    )

    bad_file = (state.InvalidProtobuf, state.InvalidGraph, state.NoModel, state.NoSuchFile)
    other = (
        state.DeviceReset,
        state.EPFail,
        state.EngineError,
        state.Fail,
        state.InvalidArgument,
        state.ModelRequiresCompilation,
        state.NotFound,
        state.NotImplemented,
        state.RuntimeException,
        RuntimeError,
        MemoryError,
    )
    try:
        yield
    except bad_file as exc:
        raise ModelFileError(
            f"model file {model_name} is no readable ONNX model; run `pagefleet models fetch`"
        ) from exc
    except other as exc:
        message = "std::bad_alloc" if isinstance(exc, MemoryError) else str(exc)
        error = inference_error(message, memory_bytes=memory_bytes)
        raise error from exc
