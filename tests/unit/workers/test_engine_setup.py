import pytest

from workers.engine_setup import slot_memory_bytes, slot_threads
from workers.settings import OcrSettings


@pytest.mark.parametrize(("slots", "threads"), [(1, 6), (2, 3), (4, 1), (9, 1)])
def test_a_slot_takes_its_share_of_the_cores(
    monkeypatch: pytest.MonkeyPatch, slots: int, threads: int
) -> None:
    monkeypatch.setattr("workers.engine_setup.count_cores", lambda: 6)

    assert slot_threads(OcrSettings(), slots=slots) == threads


def test_a_setting_stands_above_the_share() -> None:
    assert slot_threads(OcrSettings(ocr_threads=3), slots=8) == 3


def test_the_slots_of_a_card_share_nine_tenths_of_it() -> None:
    assert slot_memory_bytes(OcrSettings(), gpu_bytes=80_000, slots_per_gpu=3) == 24_000


def test_a_set_amount_of_gpu_memory_stands_above_the_share() -> None:
    settings = OcrSettings(gpu_memory_bytes=5_000)

    assert slot_memory_bytes(settings, gpu_bytes=80_000, slots_per_gpu=3) == 5_000


def test_without_a_known_card_there_is_no_limit() -> None:
    assert slot_memory_bytes(OcrSettings(), gpu_bytes=None, slots_per_gpu=1) is None
