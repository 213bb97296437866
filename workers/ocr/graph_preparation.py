"""Model graphs made ready for a device, and kept under the hash of what they were made from.

The only door to onnx. What is done here changes no text: weights that are too small to reach any
result are dropped, normalization moves in front of the first node, and the choice of the best
class behind the last one.
"""

import contextlib
import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from workers.ocr.errors import ModelFileError
from workers.ocr.normalization import Normalization

# Inputs of a graph that normalizes itself.
PIXELS_INPUT: Final = "pixels"
IS_PIXEL_INPUT: Final = "is_pixel"

# Part of a prepared file's name: another way of preparation never finds the files of this one.
_RECIPE: Final = "2"
# Products of such a weight vanish beside any sum that a float32 can hold, and are often
# subnormal, which costs a processor a hundred cycles each. Of PP-OCRv6 small detection a quarter
# of a million weights are; with them it takes 0.95 s of a core for a page, without 0.30 s, at
# the same bits in its output (measured, 832 x 1280 px).
_VANISHING: Final = np.float32(1e-20)

_DIGEST_BYTES: Final = hashlib.sha256().digest_size
_IMAGE_RANK: Final = 4


@dataclass(frozen=True, slots=True)
class Preparation:
    """What a graph does besides what its model does.

    Attributes:
        normalization: the graph takes ``PIXELS_INPUT``, (N, H, W, 3) uint8 RGB, a quarter of the
            bytes of its model's input, which it makes from them.
        has_padding: it also takes ``IS_PIXEL_INPUT``, (N, 1, 1, W) bool; columns where it is
            false are 0 for the model. No byte is: padding with one would change texts.
        chooses_best_class: a recognizer answers with (N, T, 2) float32, the best class of each
            step and its probability, instead of all probabilities, which are 9,000 times as
            large.
    """

    normalization: Normalization
    has_padding: bool = False
    chooses_best_class: bool = False


def prepared_model(
    model_path: Path, *, cache_dir: Path | None, preparation: Preparation | None = None
) -> bytes:
    """Return a model's graph, prepared, from the cache where it is there.

    Args:
        model_path: an ONNX file.
        cache_dir: made when it is missing; None, or a folder that cannot be written, for none.
        preparation: None keeps inputs and outputs as they are.

    Raises:
        ModelFileError: the file is missing or no model.
    """
    try:
        original = model_path.read_bytes()
    except OSError as exc:
        raise ModelFileError(
            f"model file {model_path.name} is missing; run `pagefleet models fetch`"
        ) from exc
    key = hashlib.sha256(f"{_RECIPE} {preparation!r} ".encode() + original).hexdigest()
    cached = None if cache_dir is None else cache_dir / f"{model_path.stem}-{key[:20]}.onnx"
    if cached is not None:
        with contextlib.suppress(OSError):
            return _checked(cached.read_bytes())
    prepared = _prepare(original, model_path.name, preparation)
    if cached is not None:
        with contextlib.suppress(OSError):  # a cache that cannot be written only costs time
            _write_whole(cached, _sealed(prepared))
    return prepared


def _prepare(original: bytes, name: str, preparation: Preparation | None) -> bytes:
    import onnx  # noqa: PLC0415  takes half a second, and a cached graph does not need it
    from google.protobuf.message import DecodeError  # noqa: PLC0415  likewise
    from onnx import numpy_helper  # noqa: PLC0415  likewise

    try:
        model = onnx.load_model_from_string(original)
    except DecodeError as exc:
        raise ModelFileError(
            f"model file {name} is no readable ONNX model; run `pagefleet models fetch`"
        ) from exc
    for tensor in model.graph.initializer:
        if tensor.data_type != onnx.TensorProto.FLOAT:
            continue
        weights = numpy_helper.to_array(tensor)
        vanishes = (weights != 0) & (np.abs(weights) < _VANISHING)
        if vanishes.any():
            tensor.CopyFrom(
                numpy_helper.from_array(np.where(vanishes, np.float32(0), weights), tensor.name)
            )
    if preparation is not None:
        _take_pixels(model, preparation, name)
        if preparation.chooses_best_class:
            _answer_with_best_class(model)
    return bytes(model.SerializeToString())


def _take_pixels(model: Any, preparation: Preparation, name: str) -> None:  # noqa: ANN401  onnx is imported in functions
    """Put normalization in front of a model's first node.

    Raises:
        ModelFileError: the model does not take one (N, 3, H, W) float32.
    """
    import onnx  # noqa: PLC0415  see _prepare
    from onnx import helper  # noqa: PLC0415  likewise

    weights = {tensor.name for tensor in model.graph.initializer}
    images = [each for each in model.graph.input if each.name not in weights]
    tensors = [each.type.tensor_type for each in images]
    if [(each.elem_type, len(each.shape.dim)) for each in tensors] != [
        (onnx.TensorProto.FLOAT, _IMAGE_RANK)
    ]:
        raise ModelFileError(f"model file {name} does not take one (N, 3, H, W) float32")
    (image,) = images
    count, _, height, width = (_axis(axis) for axis in tensors[0].shape.dim)
    nodes = _normalizing_nodes(preparation, image.name)
    model.graph.input.remove(image)
    model.graph.input.append(
        helper.make_tensor_value_info(
            PIXELS_INPUT, onnx.TensorProto.UINT8, [count, height, width, 3]
        )
    )
    if preparation.has_padding:
        model.graph.input.append(
            helper.make_tensor_value_info(
                IS_PIXEL_INPUT, onnx.TensorProto.BOOL, [count, 1, 1, width]
            )
        )
    first_nodes = [*nodes, *model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend(first_nodes)


def _normalizing_nodes(preparation: Preparation, output: str) -> list[Any]:
    """Return the nodes that make a model's input, of the name ``output``, from bytes."""
    import onnx  # noqa: PLC0415  see _prepare
    from onnx import helper, numpy_helper  # noqa: PLC0415  likewise

    nodes: list[Any] = []

    def constant(values: NDArray[np.generic]) -> str:
        name = f"normalize/constant_{len(nodes)}"
        tensor = numpy_helper.from_array(values)
        nodes.append(helper.make_node("Constant", [], [name], value=tensor))
        return name

    def step(operation: str, *inputs: str, **attributes: Any) -> str:  # noqa: ANN401  onnx takes anything
        name = f"normalize/{operation}_{len(nodes)}"
        nodes.append(helper.make_node(operation, list(inputs), [name], **attributes))
        return name

    def channels(values: tuple[float, float, float]) -> str:
        return constant(np.array(values, dtype=np.float32).reshape(1, 3, 1, 1))

    normalization = preparation.normalization
    # Bytes are moved before they become four times as many.
    planes = step("Transpose", PIXELS_INPUT, perm=[0, 3, 1, 2])
    blue_first = step("Gather", planes, constant(np.array([2, 1, 0], dtype=np.int64)), axis=1)
    numbers = step("Cast", blue_first, to=onnx.TensorProto.FLOAT)
    if normalization.unit != 1:
        numbers = step("Div", numbers, constant(np.array(normalization.unit, dtype=np.float32)))
    numbers = step("Sub", numbers, channels(normalization.mean))
    numbers = step("Div", numbers, channels(normalization.std))
    if preparation.has_padding:
        numbers = step("Where", IS_PIXEL_INPUT, numbers, constant(np.array(0, dtype=np.float32)))
    nodes[-1].output[0] = output
    return nodes


def _axis(axis: Any) -> int | str | None:  # noqa: ANN401  onnx is imported in functions
    """Return the size or the name of an axis, None where it has neither."""
    return axis.dim_value if axis.dim_value > 0 else axis.dim_param or None


def _answer_with_best_class(model: Any) -> None:  # noqa: ANN401  onnx is imported in functions
    """Replace the first output, (N, T, C) probabilities, by (N, T, 2): best class, probability.

    A class is exact as a float32 up to 16 million classes.
    """
    import onnx  # noqa: PLC0415  see _prepare
    from onnx import helper  # noqa: PLC0415  likewise

    (probabilities, *_) = (output.name for output in model.graph.output)
    model.graph.node.extend([
        helper.make_node("ArgMax", [probabilities], ["best_class_index"], axis=2, keepdims=1),
        helper.make_node("Cast", ["best_class_index"], ["best_class"], to=onnx.TensorProto.FLOAT),
        helper.make_node("ReduceMax", [probabilities], ["best_probability"], axes=[2], keepdims=1),
        helper.make_node("Concat", ["best_class", "best_probability"], ["best"], axis=2),
    ])
    del model.graph.output[:]
    model.graph.output.append(
        helper.make_tensor_value_info("best", onnx.TensorProto.FLOAT, ["N", "T", 2])
    )


def _sealed(content: bytes) -> bytes:
    return content + hashlib.sha256(content).digest()


def _checked(sealed: bytes) -> bytes:
    """Return the content of a cached file; one that is not whole counts as not there.

    Raises:
        OSError: its hash is not that of its content.
    """
    content, digest = sealed[:-_DIGEST_BYTES], sealed[-_DIGEST_BYTES:]
    if hashlib.sha256(content).digest() != digest:
        raise OSError("a cached graph is damaged")
    return content


def _write_whole(path: Path, content: bytes) -> None:
    """Write a file so that another process finds all of it or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, unfinished = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        Path(unfinished).replace(path)
    finally:
        Path(unfinished).unlink(missing_ok=True)
