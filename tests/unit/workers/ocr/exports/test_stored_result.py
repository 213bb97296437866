import json
import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.results import FAILED, page_of, result_of, stored
from workers.ocr.errors import StoredResultError
from workers.ocr.exports.page_choice import pages_name, parse_pages
from workers.ocr.exports.stored_result import open_result

TEXTS = ['","pages":[{"page_number":7', ',{"page_number":1,', "]}", "plain", "\\", '"full_text":']
RESULT = result_of(page_of(TEXTS), {**FAILED}, page_of(["last"], page_index=2), filename=TEXTS[0])


def cut(content: bytes, size: int) -> Iterator[bytes]:
    return (content[start : start + size] for start in range(0, len(content), size))


@given(size=st.integers(1, 5000))
def test_a_result_is_read_wherever_it_is_cut(size: int) -> None:
    header, pages = open_result(cut(stored(RESULT), size))

    assert list(pages) == RESULT["pages"]
    assert header == {k: v for k, v in RESULT.items() if k not in {"full_text", "pages"}}


def test_only_wanted_pages_are_returned() -> None:
    _, pages = open_result([stored(RESULT)], wanted=parse_pages("2-3"))

    assert [page["page_number"] for page in pages] == [2, 3]


def test_a_result_without_pages_has_none() -> None:
    _, pages = open_result([stored(result_of())])

    assert list(pages) == []


@pytest.mark.parametrize("stop", [10, -1, -2, -200])
def test_a_result_that_is_cut_off_is_an_error(stop: int) -> None:
    with pytest.raises(StoredResultError):
        list(open_result(cut(stored(RESULT)[:stop], 100))[1])


def test_memory_does_not_grow_with_the_pages() -> None:
    page = page_of([f"line {number} of a page" for number in range(50)])
    content = json.dumps(page, separators=(",", ":")).encode()
    opening = stored(result_of())[:-2]

    def parts() -> Iterator[bytes]:
        yield opening + content
        for _ in range(1999):
            yield b"," + content
        yield b"]}"

    tracemalloc.start()
    try:
        count = sum(1 for _ in open_result(parts())[1])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 2000
    assert peak < 100 * len(content)


@pytest.mark.parametrize(
    ("given", "numbers", "name"),
    [("7", [7], "7-7"), ("3-5", [3, 4, 5], "3-5"), (" 1-1 ", [1], "1-1")],
)
def test_pages_are_chosen_by_number(given: str, numbers: list[int], name: str) -> None:
    pages = parse_pages(given)

    assert list(pages) == numbers
    assert pages_name(pages) == name


@pytest.mark.parametrize("given", ["", "0", "5-3", "1,2", "a", "-3", "3-", "1-2-3", "٣", "9999999"])
def test_what_is_no_choice_of_pages_is_refused(given: str) -> None:
    with pytest.raises(ValueError, match="Pages"):
        parse_pages(given)
