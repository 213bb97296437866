"""Whether somebody's own models fit their manifest: every problem by name, not only the first."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

from workers.ocr.bundle import (
    MANIFEST_NAME,
    BundleManifest,
    DetectionModel,
    RecognitionModel,
    open_bundle,
    require_file,
    sha256_of,
)
from workers.ocr.engine import OcrEngine
from workers.ocr.errors import InferenceError, ModelFileError
from workers.ocr.golden import check_golden
from workers.ocr.inference import (
    ModelAxes,
    probe_output_shape,
    read_model_axes,
    read_model_facts,
)
from workers.ocr.recognition import STEP_PROBE_PX, step_problem

# (N, 3, H, W) in and (N, 1, H, W) out; recognition gives (N, T, C).
_IMAGE_RANK: Final = 4
_CLASSES_RANK: Final = 3
_COLOR_CHANNELS: Final = 3
_PROBE_SIDE_PX: Final = 320
_CHARSET_KEYS: Final = ("character", "dict", "characters")


_Model = TypeVar("_Model", DetectionModel, RecognitionModel)


def find_problems(folder: Path, manifest: BundleManifest) -> list[str]:
    """Check files, hashes, shapes and charset, and read the golden page.

    Args:
        folder: where the files lie.
        manifest: what they should be.

    Returns:
        A sentence a problem; empty when the models can be used.
    """
    problems = list(_file_problems(folder, manifest))
    if problems:
        return problems
    problems = [
        *_problems_of(_detection_problems, folder, manifest.detection),
        *_problems_of(_recognition_problems, folder, manifest.recognition),
    ]
    if problems:
        return problems
    try:
        bundle = open_bundle(folder, manifest)
        check_golden(OcrEngine(bundle), bundle)
    except (ModelFileError, InferenceError) as exc:
        return [str(exc)]
    return []


def propose_manifest(folder: Path) -> dict[str, Any]:
    """Return a manifest for the ONNX files of a folder, with the values that PP-OCR usually has.

    Raises:
        ModelFileError: there is not exactly one detector and one recognizer.
    """
    axes = {path: read_model_axes(path) for path in sorted(folder.rglob("*.onnx"))}
    # A classifier of directions has a rank of two.
    detectors = [path for path, each in axes.items() if each.output_rank == _IMAGE_RANK]
    recognizers = [path for path, each in axes.items() if each.output_rank == _CLASSES_RANK]
    for kind, found in (("detector", detectors), ("recognizer", recognizers)):
        if len(found) != 1:
            names = ", ".join(path.name for path in found) or "none"
            raise ModelFileError(f"{folder} should hold one {kind} as an .onnx file, found {names}")
    (detector,), (recognizer,) = detectors, recognizers
    height = (*axes[recognizer].input_shape, None, None, None)[2]
    return {
        "name": folder.resolve().name,
        "detection": {
            "file": _described(folder, detector),
            "size_multiple": 32,
            "mean": [0.485, 0.456, 0.406],
            "std": [0.229, 0.224, 0.225],
            "pixel_threshold": 0.3,
            "box_threshold": 0.5,
            "unclip_ratio": 1.6,
            "dilation_px": 1,
        },
        "recognition": {
            "file": _described(folder, recognizer),
            "crop_height_px": height or 48,
            "step_px": 8,
            "mean": 0.5,
            "std": 0.5,
            **_charset_source(folder, recognizer),
        },
    }


def write_manifest(folder: Path) -> Path:
    """Write the proposed manifest into a folder that has none, and return its path.

    Raises:
        ModelFileError: there is one already, or none can be proposed.
    """
    path = folder / MANIFEST_NAME
    if path.exists():
        raise ModelFileError(f"{path} is there already, and is not written over")
    text = json.dumps(propose_manifest(folder), indent=2, ensure_ascii=False) + "\n"
    path.write_text(text, encoding="utf-8")
    return path


def _file_problems(folder: Path, manifest: BundleManifest) -> Iterator[str]:
    for file in manifest.model_files:
        try:
            require_file(folder, file)
        except ModelFileError as exc:
            yield str(exc)


def _problems_of(
    check: Callable[[Path, _Model, ModelAxes], Iterator[str]], folder: Path, model: _Model
) -> Iterator[str]:
    """Yield what a check finds, its error included."""
    path = folder / model.file.name
    try:
        for problem in check(path, model, read_model_axes(path)):
            yield f"{model.file.name}: {problem}"
    except (ModelFileError, InferenceError) as exc:
        yield f"{model.file.name}: {exc}"


def _detection_problems(path: Path, model: DetectionModel, axes: ModelAxes) -> Iterator[str]:
    if axes.output_rank != _IMAGE_RANK:
        yield f"a detector's output has {_IMAGE_RANK} axes, this one has {axes.output_rank}"
        return
    yield from _input_problems(axes, "a detector")
    side = -(-_PROBE_SIDE_PX // model.size_multiple) * model.size_multiple
    shape = probe_output_shape(path, (1, _COLOR_CHANNELS, side, side))
    if shape != (1, 1, side, side):
        yield f"the output for {side} x {side} pixels is {shape}, expected {(1, 1, side, side)}"


def _recognition_problems(path: Path, model: RecognitionModel, axes: ModelAxes) -> Iterator[str]:
    if axes.output_rank != _CLASSES_RANK:
        yield f"a recognizer's output has {_CLASSES_RANK} axes, this one has {axes.output_rank}"
        return
    yield from _input_problems(axes, "a recognizer")
    height = axes.input_shape[2]
    if height is not None and height != model.crop_height_px:
        yield f"crop_height_px is {model.crop_height_px}, but its input is {height} px high"
        return
    shape = probe_output_shape(path, (1, _COLOR_CHANNELS, model.crop_height_px, STEP_PROBE_PX))
    problem = step_problem(model, shape[1])
    if problem is not None:
        yield problem


def _input_problems(axes: ModelAxes, kind: str) -> Iterator[str]:
    shape = axes.input_shape
    if len(shape) != _IMAGE_RANK or shape[1] not in {None, _COLOR_CHANNELS}:
        yield f"{kind} takes (N, 3, H, W), this one {shape}"
    elif shape[0] is not None or shape[3] is not None:
        yield f"its input {shape} is fixed; export it with free batch and width axes"


def _described(folder: Path, path: Path) -> dict[str, str]:
    return {
        "name": path.relative_to(folder).as_posix(),
        "sha256": sha256_of(path),
        "license": "unknown",
    }


def _charset_source(folder: Path, recognizer: Path) -> dict[str, Any]:
    metadata = read_model_facts(recognizer).metadata
    for key in _CHARSET_KEYS:
        if key in metadata:
            return {"charset_metadata_key": key}
    texts = sorted(folder.rglob("*dict*.txt")) or sorted(folder.rglob("*.txt"))
    if len(texts) != 1:
        names = ", ".join(path.name for path in texts) or "none"
        raise ModelFileError(
            f"the recognizer's metadata has no charset, so {folder} should hold it as one .txt"
            f" file with a character a line; found {names}"
        )
    return {"charset_file": _described(folder, texts[0])}
