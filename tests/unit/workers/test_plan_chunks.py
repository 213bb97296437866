from hypothesis import given
from hypothesis import strategies as st

from workers.split_document import plan_chunks


@given(page_count=st.integers(1, 500), chunk_pages=st.integers(1, 64))
def test_chunks_cover_every_page_once_and_in_order(page_count: int, chunk_pages: int) -> None:
    chunks = plan_chunks(page_count, chunk_pages=chunk_pages)

    covered = [page for chunk in chunks for page in range(chunk.page_start, chunk.page_stop)]
    assert covered == list(range(page_count))


@given(page_count=st.integers(1, 500), chunk_pages=st.integers(1, 64))
def test_no_chunk_is_longer_than_asked(page_count: int, chunk_pages: int) -> None:
    chunks = plan_chunks(page_count, chunk_pages=chunk_pages)

    assert max(chunk.page_stop - chunk.page_start for chunk in chunks) <= chunk_pages
