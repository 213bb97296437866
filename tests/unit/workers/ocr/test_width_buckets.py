import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.ocr.width_buckets import (
    CPU_BUCKETS_PX,
    CUDA_BUCKETS_PX,
    bucket_width_px,
    minibatch_counts,
    minibatch_limit,
)


@given(st.integers(1, 3200), st.sampled_from([CPU_BUCKETS_PX, CUDA_BUCKETS_PX]))
def test_a_crop_gets_the_smallest_bucket_that_holds_it(
    width: int, buckets: tuple[int, ...]
) -> None:
    bucket = bucket_width_px(width, buckets)

    assert bucket >= width
    assert all(smaller < width for smaller in buckets if smaller < bucket)


@given(st.integers(1, 3200))
def test_the_cpu_wastes_less_than_one_step(width: int) -> None:
    assert bucket_width_px(width, CPU_BUCKETS_PX) - width < 32


def test_a_crop_beyond_the_largest_bucket_is_refused() -> None:
    with pytest.raises(ValueError, match="3201"):
        bucket_width_px(3201, CUDA_BUCKETS_PX)


@given(st.sampled_from(CUDA_BUCKETS_PX), st.integers(1, 256), st.integers(1, 300_000))
def test_a_minibatch_keeps_both_limits_or_is_a_single_crop(
    bucket: int, chunk: int, columns: int
) -> None:
    limit = minibatch_limit(bucket, rec_chunk_size=chunk, max_px_columns=columns)

    assert 1 <= limit <= chunk
    assert limit == 1 or limit * bucket <= columns


@given(st.integers(1, 256))
def test_few_counts_reach_the_limit_and_never_more_than_double_a_minibatch(limit: int) -> None:
    counts = minibatch_counts(limit)

    assert list(counts) == sorted(set(counts))
    assert (counts[0], counts[-1]) == (1, limit)
    assert len(counts) <= 9
    for count in range(1, limit + 1):
        assert min(each for each in counts if each >= count) < 2 * count
