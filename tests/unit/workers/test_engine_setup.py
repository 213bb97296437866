import pytest

from workers.engine_setup import slot_threads
from workers.settings import OcrSettings


@pytest.mark.parametrize(("slots", "threads"), [(1, 6), (2, 3), (4, 1), (9, 1)])
def test_a_slot_takes_its_share_of_the_cores(
    monkeypatch: pytest.MonkeyPatch, slots: int, threads: int
) -> None:
    monkeypatch.setattr("workers.engine_setup.count_cores", lambda: 6)

    assert slot_threads(OcrSettings(), slots=slots) == threads


def test_a_setting_stands_above_the_share() -> None:
    assert slot_threads(OcrSettings(ocr_threads=3), slots=8) == 3
