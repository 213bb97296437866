import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.ocr import page_ranges

RANGES = st.lists(st.tuples(st.integers(1, 60), st.integers(0, 9)), min_size=1, max_size=20)


def numbers_of(ranges: list[tuple[int, int]]) -> set[int]:
    return {number for first, more in ranges for number in range(first, first + more + 1)}


def written(ranges: list[tuple[int, int]]) -> str:
    return ",".join(f"{first}-{first + more}" if more else f"{first}" for first, more in ranges)


@given(ranges=RANGES)
def test_the_same_pages_are_written_in_one_way_only(ranges: list[tuple[int, int]]) -> None:
    one_by_one = ",".join(map(str, sorted(numbers_of(ranges))))

    assert page_ranges.normalized(written(ranges)) == page_ranges.normalized(one_by_one)


@given(ranges=RANGES, page_count=st.integers(1, 80))
def test_the_pages_that_a_document_has_are_found_in_order(
    ranges: list[tuple[int, int]], page_count: int
) -> None:
    given_ranges = page_ranges.normalized(written(ranges))

    indexes = page_ranges.indexes_within(given_ranges, page_count)

    wanted = numbers_of(ranges)
    assert indexes == sorted(number - 1 for number in wanted if number <= page_count)
    assert page_ranges.last_page(given_ranges) == max(wanted)


@pytest.mark.parametrize(
    ("given_ranges", "ranges"),
    [("7", "7"), ("3-4,1-2", "1-4"), ("5,5,5", "5"), ("9-9", "9"), ("2-8,4-5,10", "2-8,10")],
)
def test_pages_are_put_in_order_and_joined(given_ranges: str, ranges: str) -> None:
    assert page_ranges.normalized(given_ranges) == ranges


@pytest.mark.parametrize(
    "given_ranges",
    ["", "0", "1-", "-3", "3-1", "1,,2", "1, 2", "01", "a", "1-2-3", "1000000", "\u0661", "1\n"],
)
def test_what_is_no_list_of_pages_is_refused(given_ranges: str) -> None:
    with pytest.raises(ValueError, match="pages"):
        page_ranges.normalized(given_ranges)


def test_no_more_than_a_hundred_ranges_are_taken() -> None:
    numbers = [str(2 * number) for number in range(1, 102)]

    assert page_ranges.normalized(",".join(numbers[:100]))
    with pytest.raises(ValueError, match="more than 100"):
        page_ranges.normalized(",".join(numbers))
