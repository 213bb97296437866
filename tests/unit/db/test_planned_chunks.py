from hypothesis import given
from hypothesis import strategies as st

from db.planned_chunks import plan_chunks

PAGE_INDEXES = st.sets(st.integers(0, 200)).map(sorted) | st.integers(0, 500).map(range)


@given(page_indexes=PAGE_INDEXES, chunk_pages=st.integers(1, 64))
def test_chunks_cover_the_pages_that_are_asked_for_and_no_others(
    page_indexes: list[int] | range, chunk_pages: int
) -> None:
    planned = plan_chunks(page_indexes, chunk_pages=chunk_pages)

    covered = [index for chunk in planned for index in range(chunk.page_start, chunk.page_stop)]
    assert covered == list(page_indexes)


@given(page_indexes=PAGE_INDEXES, chunk_pages=st.integers(1, 64))
def test_no_chunk_is_longer_than_asked(page_indexes: list[int] | range, chunk_pages: int) -> None:
    planned = plan_chunks(page_indexes, chunk_pages=chunk_pages)

    lengths = [chunk.page_stop - chunk.page_start for chunk in planned]
    assert max(lengths, default=0) <= chunk_pages


def test_neighboring_pages_are_read_together() -> None:
    planned = plan_chunks([1, 2, 3, 5, 8, 9], chunk_pages=2)

    assert [(c.page_start, c.page_stop) for c in planned] == [(1, 3), (3, 4), (5, 6), (8, 10)]
