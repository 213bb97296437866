"""Prepared graphs, on models of a few nodes that are made here."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from workers.ocr.errors import ModelFileError
from workers.ocr.graph_preparation import Preparation, prepared_model

WEIGHTS = np.array([[0.5, 1e-39, -2.0], [1e-25, 0.25, 0.0], [3.0, -1e-21, 1.0]], dtype=np.float32)


@pytest.fixture
def model_path(tmp_path: Path) -> Path:
    """Softmax(x @ WEIGHTS), (N, T, 3) in and out."""
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["y"]),
            helper.make_node("Softmax", ["y"], ["p"], axis=2),
        ],
        "tiny",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", "T", 3])],
        [helper.make_tensor_value_info("p", TensorProto.FLOAT, ["N", "T", 3])],
        [numpy_helper.from_array(WEIGHTS, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=6)
    path = tmp_path / "tiny.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def run(graph: bytes, x: NDArray[np.float32]) -> NDArray[np.float32]:
    session = ort.InferenceSession(graph, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"x": x})[0])


INPUT = np.random.default_rng(7).normal(size=(2, 5, 3)).astype(np.float32)


def test_vanishing_weights_are_dropped_and_no_other(model_path: Path) -> None:
    model = onnx.load_model_from_string(prepared_model(model_path, cache_dir=None))

    (weights,) = (numpy_helper.to_array(tensor) for tensor in model.graph.initializer)
    assert weights.tolist() == np.where(np.abs(WEIGHTS) < 1e-20, 0, WEIGHTS).tolist()


def test_a_plain_graph_answers_as_before(model_path: Path) -> None:
    prepared = prepared_model(model_path, cache_dir=None)

    assert np.array_equal(run(prepared, INPUT), run(model_path.read_bytes(), INPUT))


def test_the_best_class_is_chosen_in_the_graph(model_path: Path) -> None:
    probabilities = run(model_path.read_bytes(), INPUT)

    best = run(prepared_model(model_path, cache_dir=None, preparation="best_class"), INPUT)

    assert np.array_equal(best[..., 0], probabilities.argmax(axis=2))
    assert np.array_equal(best[..., 1], probabilities.max(axis=2))


@pytest.mark.parametrize("preparation", ["plain", "best_class"])
def test_a_graph_comes_from_the_cache_the_second_time(
    model_path: Path, tmp_path: Path, preparation: Preparation
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
    prepared_model(model_path, cache_dir=cache_dir, preparation="best_class")
    other = onnx.load(model_path)
    other.producer_name = "another"
    onnx.save(other, model_path)
    prepared_model(model_path, cache_dir=cache_dir)

    assert len(list(cache_dir.iterdir())) == 3


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
