"""The only door to OpenVINO: the same models on CPUs that multiply bfloat16 in hardware.

The library is imported inside functions, because it is an optional extra.
"""

import contextlib
import importlib.util
import queue
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from workers.ocr.errors import (
    InferenceError,
    ModelFileError,
    OutOfMemoryError,
    ProviderUnavailableError,
)
from workers.ocr.graph_preparation import prepared_model
from workers.ocr.normalization import Normalization

Precision = Literal["fp32", "bf16"]

_TELEMETRY: Final = "openvino_telemetry"
_HINTS: Final[dict[Precision, str]] = {"fp32": "f32", "bf16": "bf16"}


def is_installed() -> bool:
    """Whether the extra is there; nothing is imported."""
    return importlib.util.find_spec("openvino") is not None


def has_bfloat16() -> bool:
    """Whether this processor multiplies bfloat16 in hardware (AVX512-BF16 or AMX)."""
    return "BF16" in _runtime().Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")


class OpenVinoSession:
    """A model on the CPU's cores; as many threads as it was made for may run it at once.

    The weights are in memory once. Each concurrent run takes one core, as a single-thread
    session of onnxruntime does.
    """

    def __init__(
        self,
        model_path: Path,
        normalization: Normalization,
        *,
        precision: Precision,
        threads: int = 1,
        keeps_shapes: bool = True,
        cache_dir: Path | None = None,
    ) -> None:
        """Load a model and prove that it runs with the precision that was asked for.

        Args:
            model_path: an ONNX file.
            normalization: of its pixels. It is computed here: in the graph it would be rounded
                to bfloat16 at every step, and is no faster.
            precision: of the arithmetic; inputs and outputs are float32 with both.
            threads: that run it at once, a core each.
            keeps_shapes: whether what was compiled for a shape of the input is kept for the next;
                right where few shapes come again and again, else memory grows with every page.
            cache_dir: see ``graph_preparation.prepared_model``.

        Raises:
            ModelFileError: the file is missing or no model.
            ProviderUnavailableError: OpenVINO is not installed, or the processor has no such
                precision.
            InferenceError: any other failure.
        """
        self._normalization: Final = normalization
        graph = prepared_model(model_path, cache_dir=cache_dir)
        runtime = _runtime()
        core = runtime.Core()
        try:
            model = core.read_model(graph)
        except RuntimeError as exc:
            raise ModelFileError(
                f"model file {model_path.name} is no readable ONNX model;"
                " run `pagefleet models fetch`"
            ) from exc
        with _translated_errors():
            compiled = core.compile_model(
                model, "CPU", _configuration(precision, threads, keeps_shapes=keeps_shapes)
            )
            sides = compiled.input(0).get_partial_shape()
            self._input_shape = [side.get_length() if side.is_static else None for side in sides]
            running = compiled.get_property("INFERENCE_PRECISION_HINT")
            self._requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
            for _ in range(threads):
                self._requests.put(compiled.create_infer_request())
        if running != (runtime.Type.bf16 if precision == "bf16" else runtime.Type.f32):
            raise ProviderUnavailableError(
                f"asked for {precision}, but {running} runs; set PAGEFLEET_ENGINE=onnxruntime"
            )

    def run(
        self, pixels: NDArray[np.uint8], widths_px: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        batch = self._normalization.normalized(pixels, widths_px)
        # The runtime reads past what it was given instead of refusing it.
        if any(
            side not in {None, actual}
            for side, actual in zip(self._input_shape, batch.shape, strict=True)
        ):
            raise InferenceError(f"the model takes {self._input_shape}, not {batch.shape}")
        request = self._requests.get()
        try:
            with _translated_errors():
                request.infer({0: batch})
                # The request's own memory is written by the next run.
                output: NDArray[np.float32] = request.get_output_tensor(0).data.copy()
        finally:
            self._requests.put(request)
        return output

    def shrink(self) -> None:
        """Give back what idle requests keep for the largest shape they have seen."""
        with _translated_errors():
            for _ in range(self._requests.qsize()):
                request = self._requests.get()
                self._requests.put(request.get_compiled_model().create_infer_request())


def _configuration(precision: Precision, threads: int, *, keeps_shapes: bool) -> dict[str, Any]:
    return {
        **({} if keeps_shapes else {"CPU_RUNTIME_CACHE_CAPACITY": "0"}),
        "INFERENCE_PRECISION_HINT": _HINTS[precision],
        "NUM_STREAMS": threads,
        "INFERENCE_NUM_THREADS": threads,
        # Pinned threads of two slots, or of a neighbor, would wait for the same core.
        "ENABLE_CPU_PINNING": False,
    }


def _runtime() -> ModuleType:
    """Import the library without the module by which its tools report their use.

    Raises:
        ProviderUnavailableError: it is not installed.
    """
    if not is_installed():
        raise ProviderUnavailableError(
            "OpenVINO is not installed; install the extra `openvino`,"
            " or set PAGEFLEET_ENGINE=onnxruntime"
        )
    if "openvino" not in sys.modules:
        # None makes its import fail, and the library has a stub for that case. The stubs of
        # ``sys.modules`` do not know that None is allowed.
        sys.modules.setdefault(_TELEMETRY, None)  # type: ignore[arg-type]
    import openvino  # noqa: PLC0415  an optional extra

    module: ModuleType = openvino
    return module


@contextlib.contextmanager
def _translated_errors() -> Iterator[None]:
    """Raise the runtime's errors as ours; it has one class for all of them.

    Raises:
        OutOfMemoryError: it could not allocate.
        InferenceError: any other failure.
    """
    try:
        yield
    except MemoryError as exc:
        raise OutOfMemoryError("the runtime could not allocate memory for a minibatch") from exc
    except RuntimeError as exc:
        if "bad_alloc" in str(exc) or "Failed to allocate" in str(exc):
            raise OutOfMemoryError("the runtime could not allocate for a minibatch") from exc
        raise InferenceError("the runtime failed on a minibatch") from exc
