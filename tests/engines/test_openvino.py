"""Both engines on the real models; OpenVINO is an optional extra."""

import subprocess
import sys
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from tests.support.models import CHECKOUT, missing
from tests.support.printed_pages import PROSE, print_page
from workers.ocr import inference_openvino
from workers.ocr.bundle import ModelBundle
from workers.ocr.engine import EngineOptions, OcrEngine
from workers.ocr.engine_models import Arithmetic, open_models, recognition_preparation
from workers.ocr.errors import InferenceError, ModelFileError, ProviderUnavailableError
from workers.ocr.inference import OnnxSession
from workers.ocr.inference_openvino import OpenVinoSession
from workers.ocr.page_text import page_text
from workers.ocr.result import PageResult, page_json

PAGES = [
    print_page(PROSE, page_index=0),
    print_page(("Total 17.50", "INVOICE 2041"), page_index=1, size_px=44),
]
PIXELS = np.random.default_rng(4).integers(0, 256, (2, 48, 320, 3), dtype=np.uint8)
WIDTHS_PX = np.array([320, 200])


@pytest.fixture(autouse=True)
def _openvino() -> None:
    if not inference_openvino.is_installed():
        missing("the extra `openvino` is not installed: the second engine is NOT checked")


@pytest.fixture
def _bfloat16(_openvino: None) -> None:
    if not inference_openvino.has_bfloat16():
        pytest.skip("this processor does not multiply bfloat16")


def recognizer(bundle: ModelBundle, *, threads: int = 1) -> OpenVinoSession:
    return OpenVinoSession(
        bundle.recognition_path,
        bundle.manifest.recognition.normalization,
        precision="fp32",
        threads=threads,
    )


def results(engine: OcrEngine) -> Iterator[PageResult]:
    for outcome in engine.read_pages(PAGES):
        assert isinstance(outcome, PageResult)
        yield outcome


def test_single_precision_answers_like_onnxruntime(bundle: ModelBundle) -> None:
    preparation = recognition_preparation(bundle, "cpu")
    expected = OnnxSession(bundle.recognition_path, preparation).run(PIXELS, WIDTHS_PX)

    output = recognizer(bundle).run(PIXELS, WIDTHS_PX)

    assert np.array_equal(output.argmax(axis=2), expected.argmax(axis=2))
    assert output == pytest.approx(expected, abs=2e-3)


@pytest.mark.usefixtures("_bfloat16")
def test_bfloat16_reads_printed_pages_like_onnxruntime(bundle: ModelBundle) -> None:
    engine = OcrEngine(bundle, EngineOptions(engine="openvino", threads=2))

    texts = [page_text(page_json(result)) for result in results(engine)]

    assert texts == [page_text(page_json(result)) for result in results(OcrEngine(bundle))]


@pytest.mark.usefixtures("_bfloat16")
def test_a_result_names_engine_and_precision_and_so_does_the_version(bundle: ModelBundle) -> None:
    reference = OcrEngine(bundle)
    lower = OcrEngine(bundle, EngineOptions(engine="openvino"))

    named = [
        {(page["engine"], page["precision"]) for page in map(page_json, results(engine))}
        for engine in (reference, lower)
    ]

    assert named == [{("onnxruntime", "fp32")}, {("openvino", "bf16")}]
    assert reference.model_version == bundle.model_version
    assert lower.model_version == f"{bundle.model_version}+openvino-bf16"


@pytest.mark.usefixtures("_bfloat16")
def test_the_fast_engine_is_taken_where_it_is(bundle: ModelBundle) -> None:
    models = open_models(bundle, EngineOptions(engine="auto"))

    assert models.arithmetic == Arithmetic("openvino", "bf16")


def test_several_threads_run_a_session_at_once(bundle: ModelBundle) -> None:
    session = recognizer(bundle, threads=2)
    expected = session.run(PIXELS)
    outputs = []

    threads = [
        threading.Thread(target=lambda: outputs.append(session.run(PIXELS))) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(outputs) == 6
    assert all(np.array_equal(output, expected) for output in outputs)


def test_an_answer_is_not_overwritten_by_the_next(bundle: ModelBundle) -> None:
    session = recognizer(bundle)
    first = session.run(PIXELS)
    kept = first.copy()

    session.run(np.zeros_like(PIXELS))

    assert np.array_equal(first, kept)


def test_a_session_runs_on_after_its_memory_was_given_back(bundle: ModelBundle) -> None:
    session = recognizer(bundle, threads=2)
    before = session.run(PIXELS)

    session.shrink()

    assert np.array_equal(session.run(PIXELS), before)


def test_an_input_that_the_model_refuses_is_an_inference_error(bundle: ModelBundle) -> None:
    session = recognizer(bundle)

    with pytest.raises(InferenceError):
        session.run(np.zeros((1, 44, 64, 3), dtype=np.uint8))


def test_a_damaged_file_is_a_model_file_error(bundle: ModelBundle) -> None:
    damaged = bundle.models_dir / "none.onnx"
    normalization = bundle.manifest.recognition.normalization

    with pytest.raises(ModelFileError, match="pagefleet models fetch"):
        OpenVinoSession(damaged, normalization, precision="fp32")


def test_the_engine_of_the_cpu_is_refused_beside_cuda(bundle: ModelBundle) -> None:
    with pytest.raises(ProviderUnavailableError, match="PAGEFLEET_ENGINE=auto"):
        open_models(bundle, EngineOptions(engine="openvino", device="cuda"))


def test_nothing_reports_its_use() -> None:
    script = (
        "import sys; from workers.ocr.inference_openvino import has_bfloat16; has_bfloat16();"
        "print(sorted(m for m in sys.modules if 'openvino_telemetry' in m and sys.modules[m]))"
    )

    ended = subprocess.run(  # noqa: S603  this interpreter on our own script
        [sys.executable, "-c", script],
        cwd=CHECKOUT,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert ended.stdout.strip() == "[]"
