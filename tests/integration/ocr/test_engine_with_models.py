"""The promise of the core on the real models: the same text, however the work is cut."""

import json
from collections.abc import Sequence

import cv2
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.support.fake_sessions import FailingSession
from tests.support.printed_pages import PROSE, print_page
from tests.support.results import require_valid
from workers.ocr.bundle import ModelBundle
from workers.ocr.document_result import DocumentSource, document_json
from workers.ocr.engine import EngineOptions, OcrEngine
from workers.ocr.engine_models import detection_preparation, recognition_preparation
from workers.ocr.errors import OutOfMemoryError
from workers.ocr.inference import OnnxSession, Session
from workers.ocr.memory_ladder import LadderSession
from workers.ocr.options import OcrOptions
from workers.ocr.page_image import PageFailure, PageImage
from workers.ocr.page_text import page_text
from workers.ocr.recognition import Recognizer
from workers.ocr.recognition_limits import RecognitionLimits
from workers.ocr.result import PageResult, page_json
from workers.ocr.width_buckets import CPU_BUCKETS_PX, CUDA_BUCKETS_PX

REUSED_ENGINE = settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
PAGES = [
    print_page(PROSE[:2], page_index=0),
    print_page(("Total 17.50", "INVOICE 2041", "I", "paid"), page_index=1, size_px=44),
    print_page(PROSE[3:5], page_index=2, size_px=24),
]


def without_seconds(outcome: PageResult | PageFailure) -> str:
    # Sessions that a test brings have no engine's name.
    unlike = dict.fromkeys(("seconds", "page_number", "engine", "precision"))
    return json.dumps({**page_json(outcome), **unlike})


def read(engine: OcrEngine, pages: Sequence[PageImage]) -> list[str]:
    return [without_seconds(outcome) for outcome in engine.read_pages(pages)]


@pytest.fixture(scope="session")
def sessions(bundle: ModelBundle) -> tuple[Session, Session]:
    return (
        OnnxSession(bundle.detection_path, detection_preparation(bundle)),
        OnnxSession(bundle.recognition_path, recognition_preparation(bundle, "cpu")),
    )


@pytest.fixture(scope="session")
def expected(engine: OcrEngine) -> list[str]:
    return read(engine, PAGES)


class ShortOfMemory:
    """Has no memory for wide inputs until it was shrunk once."""

    def __init__(self, session: Session, capacity_px: int) -> None:
        self._session = session
        self._capacity_px = capacity_px

    def run(
        self, pixels: NDArray[np.uint8], widths_px: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        if pixels.shape[2] > self._capacity_px:
            raise OutOfMemoryError("full")
        return self._session.run(pixels, widths_px)

    def shrink(self) -> None:
        self._capacity_px = 10_000


@REUSED_ENGINE
@given(
    chunk_size=st.integers(1, 256),
    columns=st.integers(32, 262_144),
    order=st.lists(st.sampled_from(range(len(PAGES))), min_size=1, max_size=3, unique=True),
    threads=st.integers(1, 4),
    capacity_px=st.sampled_from([400, 10_000]),
)
def test_results_are_the_same_bytes_however_the_work_is_cut_and_after_running_out_of_memory(
    bundle: ModelBundle,
    sessions: tuple[Session, Session],
    expected: list[str],
    chunk_size: int,
    columns: int,
    order: list[int],
    threads: int,
    capacity_px: int,
) -> None:
    options = EngineOptions(
        rec_chunk_size=chunk_size, max_minibatch_px_columns=columns, threads=threads
    )
    detection, recognition = sessions
    tight = LadderSession(lambda: ShortOfMemory(recognition, capacity_px))
    engine = OcrEngine(bundle, options, sessions=(detection, tight))

    outcomes = read(engine, [PAGES[i] for i in order])

    assert outcomes == [expected[i] for i in order]


def crops_of(*texts: str) -> list[NDArray[np.uint8]]:
    return [
        np.asarray(
            cv2.resize(
                print_page((text,), size_px=36, width_px=40 * len(text) + 140, top_px=4).pixels,
                (20 * len(text) + 70, 48),
                interpolation=cv2.INTER_AREA,
            )
        )
        for text in texts
    ]


CROPS = crops_of("ledger", "No. 14", "window", "The parish paid one third", "$1,208.50", "a")


def read_texts(
    bundle: ModelBundle,
    session: Session,
    chunk_size: int,
    crops: Sequence[NDArray[np.uint8]],
    *,
    has_few_counts: bool = False,
) -> list[str]:
    limits = RecognitionLimits(chunk_size, 262_144, CUDA_BUCKETS_PX, has_few_counts)
    recognizer = Recognizer(session, bundle.manifest.recognition, bundle.charset, limits)
    return [
        outcome.text if not isinstance(outcome, OutOfMemoryError) else "out of memory"
        for outcome in recognizer.recognize(crops)
        if not isinstance(outcome, Exception) or isinstance(outcome, OutOfMemoryError)
    ]


@pytest.mark.parametrize("chunk_size", [2, 3, 256])
def test_texts_are_the_same_in_larger_minibatches(
    bundle: ModelBundle, sessions: tuple[Session, Session], chunk_size: int
) -> None:
    alone = read_texts(bundle, sessions[1], 1, CROPS)

    assert read_texts(bundle, sessions[1], chunk_size, CROPS) == alone
    assert alone[0] == "ledger"


def test_texts_are_the_same_beside_inputs_without_a_pixel(
    bundle: ModelBundle, sessions: tuple[Session, Session]
) -> None:
    filled_up = read_texts(bundle, sessions[1], 256, CROPS, has_few_counts=True)

    assert filled_up == read_texts(bundle, sessions[1], 1, CROPS)


@pytest.mark.parametrize("capacity", [1, 2, 4])
def test_texts_are_the_same_after_running_out_of_memory(
    bundle: ModelBundle, sessions: tuple[Session, Session], capacity: int
) -> None:
    tight = FailingSession(
        sessions[1], lambda batch: len(batch) > capacity, lambda: OutOfMemoryError("full")
    )

    assert read_texts(bundle, tight, 256, CROPS) == read_texts(bundle, sessions[1], 1, CROPS)


def test_a_page_that_does_not_fit_even_alone_fails_and_the_next_is_read(
    bundle: ModelBundle, sessions: tuple[Session, Session], expected: list[str]
) -> None:
    recognizer = FailingSession(
        sessions[1], lambda pixels: pixels.shape[2] > 700, lambda: OutOfMemoryError("full")
    )
    engine = OcrEngine(bundle, sessions=(sessions[0], recognizer))

    first, second = engine.read_pages([PAGES[0], PAGES[1]])

    assert isinstance(first, PageFailure)
    assert first.code == "gpu_out_of_memory"
    assert without_seconds(second) == expected[1]


def test_single_letters_are_not_taken_for_vertical_lines(engine: OcrEngine) -> None:
    (outcome,) = engine.read_pages([print_page(("7", "1", "J", "T"), size_px=40, line_step=2.5)])

    assert page_text(page_json(outcome)).split() == ["7", "1", "J", "T"]


def test_a_very_long_line_is_read_whole(engine: OcrEngine) -> None:
    text = " ".join(f"item {number} costs {number * 7} marks" for number in range(1, 31))
    page = print_page((text,), size_px=24, width_px=9600, top_px=40)

    (outcome,) = engine.read_pages([page])

    assert isinstance(outcome, PageResult)
    assert outcome.lines[0].quad.width * 48 / outcome.lines[0].quad.height > CPU_BUCKETS_PX[-1]
    assert outcome.lines[0].text == text


def test_words_have_boxes_around_their_ink(engine: OcrEngine) -> None:
    page = print_page(("alpha  beta", "gamma"), size_px=36)
    ink = np.argwhere(page.pixels[:100].min(axis=2) < 128)

    (outcome,) = engine.read_pages([page])

    assert isinstance(outcome, PageResult)
    alpha, beta = outcome.lines[0].words
    assert (alpha.text, beta.text) == ("alpha", "beta")
    assert alpha.box.x_min == pytest.approx(ink[:, 1].min(), abs=3)
    assert beta.box.x_max == pytest.approx(ink[:, 1].max(), abs=3)
    assert alpha.box.x_max < beta.box.x_min - 8


def test_the_result_of_real_pages_is_valid(engine: OcrEngine) -> None:
    failure = PageFailure(3, "damaged", "The page cannot be decoded.")

    result = document_json(
        (page_json(outcome) for outcome in engine.read_pages([*PAGES, failure])),
        document_id="0198f3a2-0000-7000-8000-000000000000",
        source=DocumentSource("pages.tif", "ab" * 32, "image/tiff", 99),
        model_version=engine.model_version,
        options=OcrOptions().model_dump(mode="json"),
    )

    require_valid(json.loads(json.dumps(result)))
    assert result["state"] == "partly_succeeded"


def test_warming_up_works_on_the_real_models(engine: OcrEngine) -> None:
    engine.warm_up()
