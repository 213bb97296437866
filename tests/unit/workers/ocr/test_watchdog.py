import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from tests.support.fake_sessions import InkReader
from tests.support.models import CHECKOUT
from workers.ocr.errors import InferenceError
from workers.ocr.watchdog import EXIT_HUNG, Watchdog, WatchedSession


def test_a_call_that_takes_too_long_is_told() -> None:
    told = threading.Event()
    watchdog = Watchdog(0.05, on_overtime=told.set)

    with watchdog.watching():
        assert told.wait(10)


def test_calls_within_their_time_are_left_alone() -> None:
    told: list[float] = []
    watchdog = Watchdog(30, on_overtime=lambda: told.append(time.monotonic()))
    session = WatchedSession(InkReader(), watchdog)

    outputs = [session.run(np.zeros((1, 48, 32, 3), dtype=np.uint8)) for _ in range(50)]

    assert len(outputs) == 50
    assert told == []


def test_a_call_that_hangs_among_others_is_told() -> None:
    told = threading.Event()
    watchdog = Watchdog(0.2, on_overtime=told.set)

    with watchdog.watching():
        while not told.is_set():
            with watchdog.watching():
                pass

    assert told.is_set()


def test_a_call_that_failed_is_not_watched_any_more() -> None:
    told = threading.Event()
    watchdog = Watchdog(0.2, on_overtime=told.set)

    with pytest.raises(InferenceError), watchdog.watching():
        raise InferenceError("no")

    assert not told.wait(0.5)


# In a process of its own, because it ends.
_HANGING_SCRIPT = """
import threading
import numpy as np
from tests.support.fake_sessions import InkDetector, ink_bundle
from workers.ocr.engine import EngineOptions, OcrEngine
from workers.ocr.page_image import PageImage

class Hanging:
    def run(self, pixels, widths_px=None):
        threading.Event().wait()

pixels = np.full((160, 400, 3), 255, dtype=np.uint8)
pixels[60:90, 50:350] = 5
options = EngineOptions(threads=2, inference_timeout_s=0.5)
engine = OcrEngine(ink_bundle(), options, sessions=(InkDetector(), Hanging()))
list(engine.read_pages([PageImage(0, pixels, dpi=200.0)]))
"""


def test_a_process_whose_inference_hangs_ends_itself() -> None:
    ended = subprocess.run(  # noqa: S603  this interpreter on our own script
        [sys.executable, "-c", _HANGING_SCRIPT],
        cwd=CHECKOUT,
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert ended.returncode == EXIT_HUNG
    assert ended.stderr.strip() == (
        "an inference took longer than 0.5 s; this process ends with code 76"
    )
