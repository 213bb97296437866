"""The door to onnxruntime, on the real thing."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from tests.support.models import CHECKOUT
from workers.ocr.bundle import ModelBundle, load_bundle
from workers.ocr.engine_models import recognition_preparation
from workers.ocr.errors import InferenceError, ModelFileError, ProviderUnavailableError
from workers.ocr.graph_preparation import Preparation
from workers.ocr.inference import OnnxSession, available_devices, read_model_facts
from workers.ocr.normalization import Normalization

WHOLE = Preparation(Normalization.of_fractions(0.5, 0.5))


def recognizer(bundle: ModelBundle) -> OnnxSession:
    return OnnxSession(bundle.recognition_path, recognition_preparation(bundle, "cpu"))


def test_a_session_answers_with_the_models_first_output(bundle: ModelBundle) -> None:
    session = recognizer(bundle)

    output = session.run(np.zeros((2, 48, 64, 3), dtype=np.uint8))

    assert output.shape == (2, 8, len(bundle.charset) + 1)
    assert output.sum(axis=2) == pytest.approx(1, abs=1e-4)


def test_a_bundle_has_the_charset_of_its_model(bundle: ModelBundle) -> None:
    assert len(bundle.charset) == 18_709
    assert bundle.charset[-1] == " "
    assert all(len(character) == 1 for character in bundle.charset)


def test_a_model_of_another_kind_is_no_recognizer(bundle: ModelBundle) -> None:
    facts = read_model_facts(bundle.detection_path)

    assert facts.output_class_count is None
    assert "character" not in facts.metadata


def test_a_damaged_file_is_a_model_file_error(bundle: ModelBundle, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.onnx"
    damaged.write_bytes(bundle.detection_path.read_bytes()[:100_000])

    with pytest.raises(ModelFileError, match=r"damaged\.onnx.*pagefleet models fetch"):
        OnnxSession(damaged, WHOLE)


def test_a_missing_file_is_a_model_file_error(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"none\.onnx.*pagefleet models fetch"):
        OnnxSession(tmp_path / "none.onnx", WHOLE)


def test_a_changed_file_stops_the_load(bundle: ModelBundle, tmp_path: Path) -> None:
    for path in (bundle.detection_path, bundle.recognition_path):
        shutil.copy(path, tmp_path)
    with (tmp_path / bundle.recognition_path.name).open("ab") as stream:
        stream.write(b"\0")

    with pytest.raises(ModelFileError, match=r"rec_small.*SHA-256"):
        load_bundle(tmp_path)


def test_an_input_that_the_model_refuses_is_an_inference_error(bundle: ModelBundle) -> None:
    session = recognizer(bundle)

    with pytest.raises(InferenceError) as caught:
        session.run(np.zeros((1, 44, 64, 3), dtype=np.uint8))

    assert caught.value.code == "internal"


def test_a_device_that_does_not_exist_is_refused(bundle: ModelBundle) -> None:
    with pytest.raises(ProviderUnavailableError, match="tpu"):
        OnnxSession(bundle.recognition_path, WHOLE, device="tpu")  # type: ignore[arg-type]  the point


def test_a_gpu_that_this_onnxruntime_cannot_use_is_refused(bundle: ModelBundle) -> None:
    if "CUDAExecutionProvider" in onnxruntime.get_available_providers():
        pytest.skip("this onnxruntime has a CUDA provider")

    with pytest.raises(ProviderUnavailableError, match="extra `gpu`"):
        OnnxSession(bundle.recognition_path, WHOLE, device="cuda")


# In a process of its own: the arena is shared by the process, and so would be its limit.
_ARENA_SCRIPT = """
import sys
from pathlib import Path
import numpy as np
from workers.ocr.errors import OutOfMemoryError
from workers.ocr.graph_preparation import Preparation
from workers.ocr.inference import OnnxSession
from workers.ocr.normalization import Normalization

preparation = Preparation(Normalization.of_fractions(0.5, 0.5), has_padding=True)
session = OnnxSession(Path(sys.argv[1]), preparation, cpu_arena_limit_bytes=200 << 20)
large = np.zeros((32, 48, 960, 3), dtype=np.uint8)
try:
    session.run(large)
except OutOfMemoryError:
    print("out of memory", session.run(large[:1, :, :64]).shape)
"""


def test_a_session_survives_running_out_of_memory(bundle: ModelBundle) -> None:
    ended = subprocess.run(  # noqa: S603  this interpreter on our own script
        [sys.executable, "-c", _ARENA_SCRIPT, str(bundle.recognition_path)],
        cwd=CHECKOUT,
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert ended.stdout.strip() == f"out of memory (1, 8, {len(bundle.charset) + 1})"


_LADDER_SCRIPT = """
import sys
from pathlib import Path
import numpy as np
from workers.ocr.bundle import load_bundle
from workers.ocr.engine_models import recognition_preparation
from workers.ocr.inference import OnnxSession
from workers.ocr.memory_ladder import LadderSession
from workers.ocr.recognition_limits import RecognitionLimits
from workers.ocr.recognition import Recognizer
from workers.ocr.width_buckets import CPU_BUCKETS_PX

bundle = load_bundle(Path(sys.argv[1]))
crops = list(np.random.default_rng(3).integers(0, 255, (24, 48, 640, 3), dtype=np.uint8))
limits = RecognitionLimits(24, 262_144, CPU_BUCKETS_PX)
preparation = recognition_preparation(bundle, "cpu")
roomy = Recognizer(
    OnnxSession(bundle.recognition_path, preparation),
    bundle.manifest.recognition,
    bundle.charset,
    limits,
)
expected = [line.text for line in roomy.recognize(crops)]
refused = []

def open_tight():
    return OnnxSession(bundle.recognition_path, preparation, cpu_arena_limit_bytes=180 << 20)

class Counting:
    def __init__(self, session):
        self.session = session
    def run(self, pixels, widths_px=None):
        try:
            return self.session.run(pixels, widths_px)
        except Exception:
            refused.append(len(pixels))
            raise

session = Counting(LadderSession(open_tight))
tight = Recognizer(session, bundle.manifest.recognition, bundle.charset, limits)
print([line.text for line in tight.recognize(crops)] == expected, bool(refused))
"""


def test_the_texts_are_the_same_where_memory_is_really_short(bundle: ModelBundle) -> None:
    ended = subprocess.run(  # noqa: S603  this interpreter on our own script
        [sys.executable, "-c", _LADDER_SCRIPT, str(bundle.models_dir)],
        cwd=CHECKOUT,
        check=True,
        capture_output=True,
        text=True,
        timeout=240,
    )

    assert ended.stdout.strip() == "True True"


def test_a_session_runs_on_after_its_memory_was_given_back(bundle: ModelBundle) -> None:
    session = recognizer(bundle)
    pixels = np.zeros((2, 48, 320, 3), dtype=np.uint8)
    before = session.run(pixels)

    session.shrink()

    assert np.array_equal(session.run(pixels), before)


def test_widths_for_a_graph_without_padding_are_refused(bundle: ModelBundle) -> None:
    session = OnnxSession(bundle.detection_path, WHOLE)

    with pytest.raises(ValueError, match="without padding"):
        session.run(np.zeros((1, 64, 64, 3), dtype=np.uint8), np.array([32]))


def test_what_the_runtime_is_said_to_compute_on_is_what_it_says_itself() -> None:
    has_provider = "CUDAExecutionProvider" in onnxruntime.get_available_providers()

    assert ("cuda" in available_devices()) == has_provider


def test_asking_what_the_runtime_computes_on_does_not_import_it() -> None:
    code = """
import sys
from workers.devices import count_gpus
count_gpus()
print("onnxruntime" in sys.modules)
"""
    asked = subprocess.run(  # noqa: S603 - the test's own code
        [sys.executable, "-c", code],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=True,
    )

    assert asked.stdout == "False\n"


OPEN_A_SESSION = """
import sys
from pathlib import Path
from workers.ocr.graph_preparation import Preparation
from workers.ocr.inference import OnnxSession
from workers.ocr.normalization import Normalization
OnnxSession(Path(sys.argv[1]), Preparation(Normalization.of_fractions(0.5, 0.5)), device="cpu")
"""


def test_the_runtime_keeps_no_log_of_its_use_in_the_users_home(
    bundle: ModelBundle, tmp_path: Path
) -> None:
    subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", OPEN_A_SESSION, str(bundle.detection_path)],
        env={"HOME": str(tmp_path), "PATH": os.defpath},
        cwd=CHECKOUT,
        check=True,
    )

    assert list(tmp_path.iterdir()) == []
