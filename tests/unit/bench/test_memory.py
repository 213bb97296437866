from typing import Any

import pytest

from bench.memory import curve_record, length_record

MIB = 2**20


def samples(*held_mib: int) -> list[dict[str, Any]]:
    return [
        {
            "pages": 10 * (position + 1),
            "pages_failed": 0,
            "seconds": float(position + 1),
            "engine_bytes": held * MIB,
            "render_child_bytes": 100 * MIB,
        }
        for position, held in enumerate(held_mib)
    ]


def test_a_curve_that_rises_only_at_first_is_flat() -> None:
    record = curve_record(samples(100, 300, *[400] * 18), title="memory")

    assert record["growth"] == 1.0
    assert record["peak_mib"] == 500
    assert record["pages"] == 200


def test_a_leak_shows_as_growth() -> None:
    record = curve_record(samples(*range(100, 2100, 100)), title="memory")

    assert record["growth"] > 2


def test_the_peak_of_a_long_document_is_compared_with_that_of_a_short_one() -> None:
    record = length_record(samples(100, 300), samples(100, 300, 420))

    assert record == {"pages": [20, 30], "peak_mib": [400, 520], "ratio": pytest.approx(1.3)}
