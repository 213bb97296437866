from pathlib import Path

from workers.tasks.failed_starts import MOST_STARTS, FailedStarts


def failing(folder: Path, *slots: int) -> FailedStarts:
    """Return the counts of a worker with slots that have used up their starts."""
    starts = FailedStarts(folder / "recognize.json")
    for slot in slots * MOST_STARTS:
        starts.add(slot)
    return starts


def test_a_worker_without_any_slot_is_hopeless(tmp_path: Path) -> None:
    assert failing(tmp_path, 0, 1).is_hopeless(2)


def test_a_worker_with_one_good_slot_is_worth_keeping(tmp_path: Path) -> None:
    assert not failing(tmp_path, 0, 2).is_hopeless(3)


def test_a_start_that_works_wipes_out_the_failures_before(tmp_path: Path) -> None:
    starts = failing(tmp_path, 0)

    starts.clear(0)
    starts.add(0)

    assert not starts.is_hopeless(1)


def test_a_worker_begins_without_the_failures_of_the_one_before(tmp_path: Path) -> None:
    failing(tmp_path, 0).forget()

    assert not FailedStarts(tmp_path / "recognize.json").is_hopeless(1)
