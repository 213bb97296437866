"""Prepared graphs of the real models against the models as they come, on crops of the samples."""

from pathlib import Path

import cv2
import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageSequence

from cli.samples import Sample
from workers.ocr.bundle import ModelBundle
from workers.ocr.crops import cut_crop, reading_quads
from workers.ocr.detection import Detector
from workers.ocr.engine_models import detection_preparation, recognition_preparation
from workers.ocr.graph_preparation import Preparation
from workers.ocr.inference import Device, OnnxSession
from workers.ocr.recognition import RecognizedLine, Recognizer
from workers.ocr.recognition_limits import RecognitionLimits
from workers.ocr.width_buckets import CPU_BUCKETS_PX, bucket_width_px

CROP_COUNT = 40
Pixels = NDArray[np.uint8]


@pytest.fixture(scope="module")
def pages(samples: dict[str, Sample]) -> list[Pixels]:
    with Image.open(samples["register.tiff"].path) as register:
        scans = [np.asarray(frame.convert("RGB")) for frame in ImageSequence.Iterator(register)]
    with Image.open(samples["dense-index.png"].path) as index:
        corner = np.asarray(index.convert("RGB"))[:600, :800]
    return [*scans, np.ascontiguousarray(corner)]


@pytest.fixture(scope="module")
def crops(bundle: ModelBundle, pages: list[Pixels]) -> list[Pixels]:
    session = OnnxSession(bundle.detection_path, detection_preparation(bundle))
    detector = Detector(session, bundle.manifest.detection)
    cut = [
        cut_crop(page, reading_quads(detection.quad)[0], 48).pixels
        for page in pages
        for detection in detector.detect(page)
    ]
    assert len(cut) >= CROP_COUNT
    return cut


def run_as_it_comes(path: Path, batch: NDArray[np.float32]) -> NDArray[np.float32]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {session.get_inputs()[0].name: batch})[0])


def normalized(
    pixels: Pixels, mean: tuple[float, ...], std: tuple[float, ...]
) -> NDArray[np.float32]:
    """Return (3, H, W) of an image, in the steps and the precision of float32."""
    mean_bytes, std_bytes = (np.array(each, dtype=np.float32) * 255 for each in (mean, std))
    bgr = (pixels[:, :, ::-1].astype(np.float32) - mean_bytes) / std_bytes
    return np.ascontiguousarray(bgr.transpose(2, 0, 1))


def test_a_padded_crop_gets_the_bits_of_a_crop_that_was_normalized_before_it_was_padded(
    bundle: ModelBundle, crops: list[Pixels]
) -> None:
    model = bundle.manifest.recognition
    session = OnnxSession(bundle.recognition_path, recognition_preparation(bundle, "cpu"))
    by_width = sorted(crops, key=lambda crop: crop.shape[1])
    for crop in (by_width[0], by_width[len(by_width) // 2]):
        width = crop.shape[1]
        bucket = bucket_width_px(width + 1, CPU_BUCKETS_PX)
        padded = np.zeros((1, 3, 48, bucket), dtype=np.float32)
        fractions = crop[:, :, ::-1].transpose(2, 0, 1) / np.float32(255)
        padded[0, :, :, :width] = (fractions - model.mean) / model.std
        pixels = np.full((1, 48, bucket, 3), 77, dtype=np.uint8)
        pixels[0, :, :width] = crop

        output = session.run(pixels, np.array([width]))

        assert np.array_equal(output, run_as_it_comes(bundle.recognition_path, padded))


def test_a_page_gets_the_bits_of_a_page_that_was_normalized_before(
    bundle: ModelBundle, pages: list[Pixels]
) -> None:
    model = bundle.manifest.detection
    page = np.ascontiguousarray(pages[0][:640, :960])

    output = OnnxSession(bundle.detection_path, detection_preparation(bundle)).run(page[None])

    batch = normalized(page, model.mean, model.std)[None]
    assert np.array_equal(output, run_as_it_comes(bundle.detection_path, batch))
    assert output.max() > 0.9


def test_the_orientation_model_gets_the_same_bits_too(
    bundle: ModelBundle, pages: list[Pixels]
) -> None:
    model, path = bundle.manifest.orientation, bundle.orientation_path
    assert model is not None
    assert path is not None
    square = np.asarray(cv2.resize(pages[0], (224, 224)), dtype=np.uint8)

    output = OnnxSession(path, Preparation(model.normalization)).run(square[None])

    batch = normalized(square, model.mean, model.std)[None]
    assert np.array_equal(output, run_as_it_comes(path, batch))


def read(bundle: ModelBundle, crops: list[Pixels], device: Device) -> list[RecognizedLine]:
    """Read crops on the CPU with the graph that a device gets."""
    session = OnnxSession(bundle.recognition_path, recognition_preparation(bundle, device))
    limits = RecognitionLimits(1, 262_144, CPU_BUCKETS_PX)
    recognizer = Recognizer(session, bundle.manifest.recognition, bundle.charset, limits)
    lines = recognizer.recognize(crops)
    return [line for line in lines if isinstance(line, RecognizedLine)]


def test_a_graph_that_chooses_the_class_reads_the_same_with_the_same_confidence(
    bundle: ModelBundle, crops: list[Pixels]
) -> None:
    chosen = read(bundle, crops[:CROP_COUNT], "cuda")

    assert chosen == read(bundle, crops[:CROP_COUNT], "cpu")
    assert len(chosen) == CROP_COUNT
    assert sum(len(line.text) > 3 for line in chosen) > CROP_COUNT / 2
