"""How much goes through the recognizer together, and in which shapes."""

import bisect
from dataclasses import dataclass

from workers.ocr.width_buckets import minibatch_counts, minibatch_limit


@dataclass(frozen=True, slots=True)
class RecognitionLimits:
    """How much goes through the model together; none of it changes a result.

    Attributes:
        rec_chunk_size: crops in one minibatch.
        max_minibatch_px_columns: crops times padded width of one minibatch, because the output
            takes 75 KB for every 8 columns.
        buckets_px: the padded widths; see ``width_buckets``.
        has_few_counts: whether minibatches are filled up with empty inputs to one of few sizes,
            for a device that plans anew for every shape.
    """

    rec_chunk_size: int
    max_minibatch_px_columns: int
    buckets_px: tuple[int, ...]
    has_few_counts: bool = False

    def limit(self, bucket_px: int) -> int:
        """Return how many crops of one bucket go through the model together."""
        return minibatch_limit(
            bucket_px,
            rec_chunk_size=self.rec_chunk_size,
            max_px_columns=self.max_minibatch_px_columns,
        )

    def padded_count(self, count: int, bucket_px: int) -> int:
        """Return how many inputs a minibatch has with the empty ones.

        Args:
            count: of crops, not over the limit.
            bucket_px: their padded width.
        """
        if not self.has_few_counts:
            return count
        counts = minibatch_counts(self.limit(bucket_px))
        return counts[bisect.bisect_left(counts, count)]

    @property
    def warm_up_shapes(self) -> tuple[tuple[int, int], ...]:
        """(N, width) of all inputs that work will bring, or of one where any may come."""
        if not self.has_few_counts:
            return ((1, self.buckets_px[0]),)
        return tuple(
            (count, bucket_px)
            for bucket_px in self.buckets_px
            for count in minibatch_counts(self.limit(bucket_px))
        )
