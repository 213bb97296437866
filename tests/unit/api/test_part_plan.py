import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.part_plan import PartPlan, plan_parts
from storage.part_uploads import MAX_PART_BYTES, MAX_PARTS, MIN_PART_BYTES

TIB = 2**40


@given(
    size_bytes=st.integers(1, 5 * TIB - 1),
    part_bytes=st.integers(MIN_PART_BYTES, MAX_PART_BYTES),
)
def test_parts_are_what_storage_takes(size_bytes: int, part_bytes: int) -> None:
    plan = plan_parts(size_bytes, part_bytes=part_bytes)

    assert 1 <= plan.count <= MAX_PARTS
    assert MIN_PART_BYTES <= plan.part_bytes <= MAX_PART_BYTES
    assert plan.part_bytes >= part_bytes


@given(size_bytes=st.integers(1, 10_000), part_bytes=st.integers(1, 1_000))
def test_parts_together_are_the_file(size_bytes: int, part_bytes: int) -> None:
    plan = PartPlan(size_bytes, part_bytes)
    sizes = [plan.size_of(number) for number in plan.numbers]

    assert sum(sizes) == size_bytes
    assert set(sizes[:-1]) <= {part_bytes}
    assert 1 <= sizes[-1] <= part_bytes


def test_a_small_file_is_one_part() -> None:
    assert plan_parts(1, part_bytes=MIN_PART_BYTES).count == 1


@pytest.mark.parametrize("number", [0, 3])
def test_there_is_no_other_part(number: int) -> None:
    with pytest.raises(ValueError, match="parts are 1 to 2"):
        PartPlan(size_bytes=11, part_bytes=10).size_of(number)
