import pytest

from bench.fleet_curve import fleet_record, scale_record

COUNTERS = {
    "rows_inserted": 0,
    "rows_updated": 0,
    "rows_deleted": 0,
    "transactions": 0,
    "wal_bytes": 0,
    "size_bytes": 0,
    "connections": 3,
}


def sample(
    *,
    redis_bytes: int = 1,
    split: int = 0,
    finished: int = 0,
    cpu_s: float = 0.0,
    yardstick_ms: float = 20.0,
    **counters: int,
) -> dict[str, object]:
    return {
        "seconds": 0.0,
        "finished": finished,
        "cpu_s": cpu_s,
        "yardstick_ms": yardstick_ms,
        "redis_bytes": redis_bytes,
        "messages": {"split": split},
        "unacked": 0,
        "database": {**COUNTERS, **counters},
    }


def test_a_fleet_that_slows_down_is_seen_in_its_last_tenth() -> None:
    steady = [number / 10 for number in range(91)]
    times_s = [*steady, *(steady[-1] + number / 5 for number in range(1, 11))]

    record = scale_record([sample()], times_s, title="any")

    assert record["documents_per_s_by_tenth"] == pytest.approx([10.0] * 9 + [5.0])
    assert record["last_to_first"] == pytest.approx(0.5)


def test_a_machine_that_slows_down_is_told_from_a_fleet_that_does() -> None:
    times_s = [number / 10 for number in range(91)]
    times_s += [times_s[-1] + number / 5 for number in range(1, 11)]
    samples = [
        sample(finished=finished, yardstick_ms=40.0 if finished > 90 else 20.0)
        for finished in (0, 4, 8, 30, 60, 90, 95, 100)
    ]

    record = scale_record(samples, times_s, title="any")

    assert record["yardstick_ms_by_tenth"] == pytest.approx([20.0] * 9 + [40.0])
    assert record["last_to_first"] == pytest.approx(0.5)
    assert record["last_to_first_at_equal_speed"] == pytest.approx(1.0)


def test_the_peaks_are_those_of_all_samples_and_rows_are_counted_between_first_and_last() -> None:
    samples = [
        sample(redis_bytes=5, split=2, rows_inserted=100),
        sample(redis_bytes=9, split=7, rows_inserted=150, rows_updated=30),
        sample(redis_bytes=4, split=0, rows_inserted=200, rows_updated=90, rows_deleted=10),
    ]

    record = scale_record(samples, [0.0, *(float(n) for n in range(1, 20))], title="any")

    assert (record["redis_peak_bytes"], record["messages_peak"]) == (9, {"split": 7})
    assert record["rows_written_per_document"] == 10.0


def test_processor_time_is_shared_out_over_the_documents_between_two_samples() -> None:
    samples = [
        sample(finished=0, cpu_s=3.0),
        sample(finished=0, cpu_s=10.0),
        sample(finished=90, cpu_s=19.0),
        sample(finished=100, cpu_s=21.0),
    ]

    record = scale_record(samples, [float(n) for n in range(100)], title="any")

    assert record["cpu_ms_per_document_by_tenth"] == [100.0] * 9 + [200.0]


def test_a_fleet_is_compared_with_the_core_before_and_after_it() -> None:
    record = fleet_record([100.0, 102.0, 104.0], bare=(1.5, 2.5))

    assert record["fleet_pages_per_s"] == 2.0
    assert record["ratio"] == 1.0
