"""Prepared graphs, on models of a few nodes that are made here."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from workers.ocr.errors import ModelFileError
from workers.ocr.graph_preparation import (
    IS_PIXEL_INPUT,
    PIXELS_INPUT,
    Preparation,
    prepared_model,
)
from workers.ocr.normalization import Normalization

WEIGHTS = np.array([[0.5, 1e-39, -2.0], [1e-25, 0.25, 0.0], [3.0, -1e-21, 1.0]], dtype=np.float32)


NORMALIZATION = Normalization.of_fractions(0.5, 0.25)
BARE = Preparation(NORMALIZATION)
PADDED = Preparation(NORMALIZATION, has_padding=True)
CHOOSING = Preparation(NORMALIZATION, chooses_best_class=True)


def write_recognizer(folder: Path, input_shape: Sequence[int | str] = ("N", 3, 2, "W")) -> Path:
    """Write a model of 3 classes: Softmax(mean of each column of x @ WEIGHTS), (N, W, 3)."""
    graph = helper.make_graph(
        [
            helper.make_node("ReduceMean", ["x"], ["columns"], axes=[2], keepdims=0),
            helper.make_node("Transpose", ["columns"], ["steps"], perm=[0, 2, 1]),
            helper.make_node("MatMul", ["steps", "w"], ["y"]),
            helper.make_node("Softmax", ["y"], ["p"], axis=2),
        ],
        "tiny",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, input_shape)],
        [helper.make_tensor_value_info("p", TensorProto.FLOAT, ["N", "W", 3])],
        [numpy_helper.from_array(WEIGHTS, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=6)
    path = folder / "tiny.onnx"
    path.write_bytes(model.SerializeToString())
    return path


@pytest.fixture
def model_path(tmp_path: Path) -> Path:
    return write_recognizer(tmp_path)


def write_image_copier(folder: Path, element_type: int = TensorProto.FLOAT) -> Path:
    """Write a model that answers with its (N, 3, H, W) input."""
    shape = ["N", 3, "H", "W"]
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y"])],
        "copier",
        [helper.make_tensor_value_info("x", element_type, shape)],
        [helper.make_tensor_value_info("y", element_type, shape)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=6)
    path = folder / "copier.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def run(graph: bytes, **inputs: NDArray[np.generic]) -> NDArray[np.float32]:
    session = ort.InferenceSession(graph, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, inputs)[0])


RANDOM = np.random.default_rng(7)
INPUT = RANDOM.normal(size=(2, 3, 2, 5)).astype(np.float32)
PIXELS = RANDOM.integers(0, 256, (2, 2, 5, 3), dtype=np.uint8)
EVERY_BYTE = np.stack([np.arange(256, dtype=np.uint8)[np.newaxis, np.newaxis]] * 3, axis=3)


def test_vanishing_weights_are_dropped_and_no_other(model_path: Path) -> None:
    model = onnx.load_model_from_string(prepared_model(model_path, cache_dir=None))

    (weights,) = (numpy_helper.to_array(tensor) for tensor in model.graph.initializer)
    assert weights.tolist() == np.where(np.abs(WEIGHTS) < 1e-20, 0, WEIGHTS).tolist()


def test_a_plain_graph_answers_as_before(model_path: Path) -> None:
    prepared = prepared_model(model_path, cache_dir=None)

    assert np.array_equal(run(prepared, x=INPUT), run(model_path.read_bytes(), x=INPUT))


@pytest.mark.parametrize(
    "normalization",
    [
        Normalization.of_fractions(0.5, 0.5),
        Normalization.of_fractions(0.123, 0.456),
        Normalization.of_bytes((0.406, 0.456, 0.485), (0.225, 0.224, 0.229)),
    ],
)
def test_a_graph_normalizes_every_byte_to_the_same_bits_as_numpy(
    tmp_path: Path, normalization: Normalization
) -> None:
    graph = prepared_model(
        write_image_copier(tmp_path), cache_dir=None, preparation=Preparation(normalization)
    )

    output = run(graph, **{PIXELS_INPUT: EVERY_BYTE})

    assert np.array_equal(output, normalization.normalized(EVERY_BYTE))


def test_columns_that_are_no_pixels_are_exactly_0_whatever_their_bytes(tmp_path: Path) -> None:
    graph = prepared_model(write_image_copier(tmp_path), cache_dir=None, preparation=PADDED)
    widths_px = np.array([3, 0])
    is_pixel = (np.arange(5) < widths_px[:, np.newaxis]).reshape(2, 1, 1, 5)

    output = run(graph, **{PIXELS_INPUT: PIXELS, IS_PIXEL_INPUT: is_pixel})

    assert np.array_equal(output, NORMALIZATION.normalized(PIXELS, widths_px))
    assert not output[0, :, :, 3:].any()
    assert not output[1].any()
    assert output[0, :, :, :3].all()


def test_fixed_axes_of_a_model_stay_fixed(tmp_path: Path) -> None:
    graph = prepared_model(
        write_recognizer(tmp_path, ("N", 3, 2, 5)), cache_dir=None, preparation=PADDED
    )

    session = ort.InferenceSession(graph, providers=["CPUExecutionProvider"])

    assert {each.name: each.shape for each in session.get_inputs()} == {
        PIXELS_INPUT: ["N", 2, 5, 3],
        IS_PIXEL_INPUT: ["N", 1, 1, 5],
    }


def test_a_model_of_another_number_format_is_refused_by_name(tmp_path: Path) -> None:
    path = write_image_copier(tmp_path, TensorProto.FLOAT16)

    with pytest.raises(ModelFileError, match=r"copier\.onnx does not take .* float32"):
        prepared_model(path, cache_dir=None, preparation=BARE)


def test_the_best_class_is_chosen_in_the_graph(model_path: Path) -> None:
    probabilities = run(
        prepared_model(model_path, cache_dir=None, preparation=BARE), **{PIXELS_INPUT: PIXELS}
    )

    best = run(
        prepared_model(model_path, cache_dir=None, preparation=CHOOSING), **{PIXELS_INPUT: PIXELS}
    )

    assert np.array_equal(best[..., 0], probabilities.argmax(axis=2))
    assert np.array_equal(best[..., 1], probabilities.max(axis=2))


@pytest.mark.parametrize("preparation", [None, BARE, CHOOSING])
def test_a_graph_comes_from_the_cache_the_second_time(
    model_path: Path, tmp_path: Path, preparation: Preparation | None
) -> None:
    cache_dir = tmp_path / "cache"
    first = prepared_model(model_path, cache_dir=cache_dir, preparation=preparation)
    (cached,) = cache_dir.iterdir()
    written = cached.stat().st_mtime_ns

    assert prepared_model(model_path, cache_dir=cache_dir, preparation=preparation) == first
    assert [path.stat().st_mtime_ns for path in cache_dir.iterdir()] == [written]


def test_each_preparation_of_each_model_has_its_own_file(model_path: Path, tmp_path: Path) -> None:
    cache_dir = tmp_path / "cache"
    prepared_model(model_path, cache_dir=cache_dir)
    other_mean = Preparation(Normalization.of_fractions(0.4, 0.25))
    for preparation in (BARE, PADDED, CHOOSING, other_mean):
        prepared_model(model_path, cache_dir=cache_dir, preparation=preparation)
    other = onnx.load(model_path)
    other.producer_name = "another"
    onnx.save(other, model_path)
    prepared_model(model_path, cache_dir=cache_dir)

    assert len(list(cache_dir.iterdir())) == 6


def test_a_damaged_cache_is_made_again(model_path: Path, tmp_path: Path) -> None:
    cache_dir = tmp_path / "cache"
    first = prepared_model(model_path, cache_dir=cache_dir)
    (cached,) = cache_dir.iterdir()
    cached.write_bytes(cached.read_bytes()[:-40])

    assert prepared_model(model_path, cache_dir=cache_dir) == first


def test_a_cache_that_cannot_be_written_is_done_without(model_path: Path, tmp_path: Path) -> None:
    occupied = tmp_path / "file"
    occupied.write_bytes(b"")

    prepared = prepared_model(model_path, cache_dir=occupied / "cache")

    assert prepared == prepared_model(model_path, cache_dir=None)


def test_a_missing_file_is_a_model_file_error(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"none\.onnx.*pagefleet models fetch"):
        prepared_model(tmp_path / "none.onnx", cache_dir=None)


def test_a_file_that_is_no_model_is_a_model_file_error(tmp_path: Path) -> None:
    path = tmp_path / "text.onnx"
    path.write_bytes(b"\xff\xff not a model")

    with pytest.raises(ModelFileError, match=r"text\.onnx.*pagefleet models fetch"):
        prepared_model(path, cache_dir=None)
