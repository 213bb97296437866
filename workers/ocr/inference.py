"""The only door to onnxruntime.

The library is imported inside functions: a worker chooses its device through the environment
before the first import. Its errors stop here; out of memory and a corrupt device context are
told apart by message, because their classes changed between versions.
"""

import contextlib
import importlib.util
import json
import os
import re
import tempfile
import threading
from collections import Counter
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
from workers.ocr.graph_preparation import (
    IS_PIXEL_INPUT,
    PIXELS_INPUT,
    Preparation,
    prepared_model,
)

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
# Of the file in which a distribution of onnxruntime says what it is.
_BUILT_FOR_CUDA: Final = re.compile(r"^(package_name = .*-gpu|cuda_version = )", re.MULTILINE)


# Both models take inputs whose free sides are multiples of this.
_SMALLEST_SIDE: Final = 32


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """What a device has, and how much of it one session's arena may take, in bytes."""

    device_bytes: int
    session_bytes: int


class Session(Protocol):
    """One model that is ready to run; tests and other runtimes bring their own.

    It normalizes pixels itself: in its graph, or with ``Normalization.normalized`` where a
    runtime takes floats. On a CPU several threads may run it at once; on CUDA one thread owns it.
    """

    def run(
        self, pixels: NDArray[np.uint8], widths_px: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        """Run one minibatch.

        Args:
            pixels: (N, H, W, 3) uint8 RGB.
            widths_px: (N,) how many columns of each input are pixels, from the left; what lies
                beyond them is 0 for the model, whatever its bytes are. None: all are pixels.

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
    """A model on one device; several threads may run it at once on a CPU, in turn on CUDA."""

    def __init__(
        self,
        model_path: Path,
        preparation: Preparation,
        *,
        device: Device = "cpu",
        threads: int = 1,
        cpu_arena_limit_bytes: int | None = None,
        memory: DeviceMemory | None = None,
        cache_dir: Path | None = None,
    ) -> None:
        """Load a model and prove that it runs on the device that was asked for.

        Args:
            model_path: an ONNX file.
            preparation: of its graph; see ``graph_preparation``.
            device: where it runs; there is no silent change to another.
            threads: CPU threads of one run.
            cpu_arena_limit_bytes: most memory that the CPU arena may hold, all sessions with a
                limit together; None for no limit.
            memory: of the device and this session's part of it; None for no limit.
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
        # Pages are set upright, with the recognizer's help, while others are recognized.
        self._turn: contextlib.AbstractContextManager[object] = (
            threading.Lock() if device == "cuda" else contextlib.nullcontext()
        )
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
        self._has_padding: Final = preparation.has_padding
        self._input_shape = self._session.get_inputs()[0].shape
        self._output_name: str = self._session.get_outputs()[0].name

    def run(
        self, pixels: NDArray[np.uint8], widths_px: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        """See ``Session``.

        Raises:
            ValueError: widths for a graph that was prepared without padding.
        """
        if widths_px is not None and not self._has_padding:
            raise ValueError("this session was opened for inputs without padding")
        return self._run(pixels, widths_px, None)

    def shrink(self) -> None:
        """Give the arena's unused memory back.

        The runtime does so only at the end of a run, so the smallest input is run.
        """
        options = self._new_run_options()
        arena = "gpu:0" if self._device == "cuda" else "cpu:0"
        options.add_run_config_entry("memory.enable_memory_arena_shrinkage", arena)
        sides = [side if isinstance(side, int) else _SMALLEST_SIDE for side in self._input_shape]
        self._run(np.zeros((1, *sides[1:]), dtype=np.uint8), None, options)

    def _run(
        self,
        pixels: NDArray[np.uint8],
        widths_px: NDArray[np.int64] | None,
        options: Any,  # noqa: ANN401  onnxruntime is untyped
    ) -> NDArray[np.float32]:
        feed = _feed(pixels, widths_px, has_padding=self._has_padding)
        with self._turn, _translated_errors(memory_bytes=self._memory_bytes):
            output: NDArray[np.float32] = self._session.run([self._output_name], feed, options)[0]
        return output


def _feed(
    pixels: NDArray[np.uint8], widths_px: NDArray[np.int64] | None, *, has_padding: bool
) -> dict[str, NDArray[Any]]:
    """Return the inputs of a prepared graph."""
    if not has_padding:
        return {PIXELS_INPUT: pixels}
    count, _, width = pixels.shape[:3]
    widths = np.full(count, width) if widths_px is None else widths_px
    is_pixel = np.arange(width) < widths.reshape(-1, 1, 1, 1)
    return {PIXELS_INPUT: pixels, IS_PIXEL_INPUT: is_pixel}


def provider_options(device: Device, memory: DeviceMemory | None) -> dict[str, str]:
    """Return the options of the device's execution provider."""
    if device == "cpu":
        return {}
    limit = {} if memory is None else {"gpu_mem_limit": str(memory.session_bytes)}
    return {**_CUDA_OPTIONS, **limit}


def available_devices(package_folder: Path | None = None) -> frozenset[Device]:
    """Return what the installed runtime is built for; it is not imported for that.

    Whoever asks has not pinned a device yet, and the import would look at all of them.

    Args:
        package_folder: of the package ``onnxruntime``; None looks for it.
    """
    if package_folder is None:
        found = importlib.util.find_spec("onnxruntime")
        if found is None or found.origin is None:
            return frozenset()
        package_folder = Path(found.origin).parent
    # Each distribution writes down here what it was built with; with both installed, the one
    # that came last has overwritten the other's library and this file alike.
    built = package_folder / "capi" / "build_and_package_info.py"
    is_for_gpus = built.is_file() and _BUILT_FOR_CUDA.search(built.read_text("utf-8")) is not None
    return frozenset({"cpu", "cuda"} if is_for_gpus else {"cpu"})


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
    # It would keep an id of the machine and a log of its use in the user's home, to be sent on.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # noqa: TID251 - onnxruntime reads nothing else
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
    # It would keep the bytes of the model's file beside the weights, for a change of its providers.
    session._model_bytes = None  # noqa: SLF001 - it has no method for that
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


@dataclass(frozen=True, slots=True)
class ModelAxes:
    """The shape that a model file asks for.

    Attributes:
        input_shape: of the first input; None stands for an axis that is not fixed.
        output_rank: axes of the first output.
    """

    input_shape: tuple[int | None, ...]
    output_rank: int


def read_model_axes(model_path: Path) -> ModelAxes:
    """Read the axes of a model file; a bad file is a ``ModelFileError``."""
    session = _open_plain(str(model_path), "cpu", name=model_path.name)
    return ModelAxes(
        input_shape=tuple(
            axis if isinstance(axis, int) else None for axis in session.get_inputs()[0].shape
        ),
        output_rank=len(session.get_outputs()[0].shape),
    )


def probe_output_shape(model_path: Path, input_shape: tuple[int, ...]) -> tuple[int, ...]:
    """Run a model file as it is on zeros, on the CPU, and return the shape of its first output.

    A bad file is a ``ModelFileError``, a model that refuses the shape an ``InferenceError``.
    """
    session = _open_plain(str(model_path), "cpu", name=model_path.name)
    zeros = np.zeros(input_shape, dtype=np.float32)
    with _translated_errors():
        output = session.run(None, {session.get_inputs()[0].name: zeros})[0]
    return tuple(output.shape)


def count_node_providers(
    model_path: Path, preparation: Preparation, device: Device, input_shape: tuple[int, ...]
) -> Counter[str]:
    """Run a prepared model on zeros and count which provider ran how many of its nodes.

    The proof that a device really computes: a session names its first provider even when most
    nodes run elsewhere. The errors of ``OnnxSession`` pass through.

    Args:
        model_path: an ONNX file.
        preparation: of its graph, as for work.
        device: that should compute.
        input_shape: (N, H, W, 3).
    """
    graph = prepared_model(model_path, cache_dir=None, preparation=preparation)
    zeros = np.zeros(input_shape, dtype=np.uint8)
    with tempfile.TemporaryDirectory() as folder:
        session = _open_plain(graph, device, name=model_path.name, profile_prefix=f"{folder}/run")
        with _translated_errors():
            session.run(None, _feed(zeros, None, has_padding=preparation.has_padding))
        events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
    return Counter(
        str(event["args"]["provider"])
        for event in events
        if event.get("cat") == "Node" and event.get("args", {}).get("provider")
    )


def _open_plain(
    graph: bytes | str, device: Device, *, name: str, profile_prefix: str | None = None
) -> Any:  # noqa: ANN401  onnxruntime is untyped
    """Open a model, or a file of this path, for a look at it, not for work."""
    ort = _runtime(device)
    options = _session_options(ort, threads=1)
    if profile_prefix is not None:
        options.enable_profiling = True
        options.profile_file_prefix = profile_prefix
    with _translated_errors(name):
        return ort.InferenceSession(
            graph, options, providers=[_PROVIDERS[device]], enable_fallback=0
        )
