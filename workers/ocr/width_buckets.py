"""The padded width of a crop: a function of that crop alone.

Padding changes what a recognizer reads, so a crop is never padded to its neighbors' width. Then
its text is the same in any minibatch, on any page range and after any retry.
"""

import bisect
from collections.abc import Sequence
from typing import Final

# The CPU pays for every column, so its buckets are exact widths in the step that keeps the
# network's inner sizes whole.
CPU_BUCKETS_PX: Final = tuple(range(32, 3200 + 1, 32))
# CUDA rebuilds all convolution plans when a shape changes, so it gets few.
CUDA_BUCKETS_PX: Final = (320, 480, 640, 960, 1280, 1920, 2560, 3200)


def bucket_width_px(width_px: int, buckets_px: Sequence[int]) -> int:
    """Return the smallest bucket that holds a crop.

    Args:
        width_px: of the crop at the recognizer's height.
        buckets_px: ascending.

    Raises:
        ValueError: the crop is wider than the largest bucket; such a line is split first.
    """
    position = bisect.bisect_left(buckets_px, width_px)
    if position == len(buckets_px):
        raise ValueError(f"a crop of {width_px} px is wider than the bucket of {buckets_px[-1]} px")
    return buckets_px[position]


def minibatch_counts(limit: int) -> tuple[int, ...]:
    """Return the few sizes that a minibatch of one bucket has on CUDA: 1, 2, 4, … and the limit.

    Args:
        limit: most crops of the bucket that go through the model together.
    """
    return (*(1 << power for power in range((limit - 1).bit_length())), limit)


def minibatch_limit(bucket_px: int, *, rec_chunk_size: int, max_px_columns: int) -> int:
    """Return how many crops of one bucket go through the model together, at least 1."""
    return max(1, min(rec_chunk_size, max_px_columns // bucket_px))
