"""Reading crops: minibatches of one width, and the halving of a minibatch that does not fit."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workers.ocr.bundle import RecognitionModel
from workers.ocr.ctc import decode_greedy, mean_confidence
from workers.ocr.errors import InferenceError, PoisonedContextError
from workers.ocr.inference import Session
from workers.ocr.long_lines import LinePiece, PlacedCharacter, join_pieces, split_line
from workers.ocr.width_buckets import bucket_width_px, minibatch_limit


@dataclass(frozen=True, slots=True)
class RecognitionLimits:
    """How much goes through the model together; none of it changes a result.

    Attributes:
        rec_chunk_size: crops in one minibatch.
        max_minibatch_px_columns: crops times padded width of one minibatch, because the output
            takes 75 KB for every 8 columns.
        buckets_px: the padded widths; see ``width_buckets``.
    """

    rec_chunk_size: int
    max_minibatch_px_columns: int
    buckets_px: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RecognizedLine:
    """What one crop says: its characters in reading order, in pixels of the crop."""

    characters: tuple[PlacedCharacter, ...]

    @property
    def text(self) -> str:
        return "".join(character.text for character in self.characters)

    @property
    def confidence(self) -> float:
        """Mean of the kept steps, [0, 1]; 0.0 for an empty line."""
        return mean_confidence([character.confidence for character in self.characters])


@dataclass(frozen=True, slots=True)
class _Unit:
    """One input of the model: a crop, or a piece of a long one."""

    crop_index: int
    piece: LinePiece
    pixels: NDArray[np.uint8]


_Reading = tuple[PlacedCharacter, ...] | InferenceError


class Recognizer:
    """A recognition model behind a session, from crops to characters with their places."""

    def __init__(
        self,
        session: Session,
        model: RecognitionModel,
        charset: Sequence[str],
        limits: RecognitionLimits,
    ) -> None:
        self._session = session
        self._model = model
        self._charset = charset
        self._limits = limits

    def recognize(
        self, crops: Sequence[NDArray[np.uint8]]
    ) -> list[RecognizedLine | InferenceError]:
        """Read crops, of one page or of many.

        A minibatch that fails is halved until the crop is found that cannot be read, so that one
        crop's failure is not its neighbors'.

        Args:
            crops: each (crop height of the model, W, 3) uint8 RGB.

        Returns:
            For each crop, in the order given, what it says or why the runtime could not read it.

        A ``PoisonedContextError`` passes through: this process must end.
        """
        units = [
            _Unit(crop_index, piece, crop[:, piece.span.start : piece.span.stop])
            for crop_index, crop in enumerate(crops)
            for piece in split_line(crop, self._limits.buckets_px[-1])
        ]
        readings = self._read_units(units)
        parts: dict[int, list[tuple[LinePiece, _Reading]]] = defaultdict(list)
        for unit, reading in zip(units, readings, strict=True):
            parts[unit.crop_index].append((unit.piece, reading))
        return [_join(parts[index]) for index in range(len(crops))]

    def warm_up(self) -> None:
        """Run once on an empty input; an ``InferenceError`` of the runtime passes through."""
        shape = (1, 3, self._model.crop_height_px, self._limits.buckets_px[0])
        self._session.run(np.zeros(shape, dtype=np.float32))

    def _read_units(self, units: Sequence[_Unit]) -> list[_Reading]:
        positions_by_bucket: dict[int, list[int]] = defaultdict(list)
        for position, unit in enumerate(units):
            bucket = bucket_width_px(unit.pixels.shape[1], self._limits.buckets_px)
            positions_by_bucket[bucket].append(position)
        readings: dict[int, _Reading] = {}
        # All minibatches of one width before the next: a CUDA session keeps the plan of its last
        # shape only.
        for bucket, positions in sorted(positions_by_bucket.items()):
            limit = minibatch_limit(
                bucket,
                rec_chunk_size=self._limits.rec_chunk_size,
                max_px_columns=self._limits.max_minibatch_px_columns,
            )
            for first in range(0, len(positions), limit):
                part = positions[first : first + limit]
                outcomes = self._read_halving([units[position] for position in part], bucket)
                readings.update(zip(part, outcomes, strict=True))
        return [readings[position] for position in range(len(units))]

    def _read_halving(self, minibatch: Sequence[_Unit], width_px: int) -> list[_Reading]:
        """Read a minibatch; on a failure its halves, at the same width so that no text changes.

        Raises:
            PoisonedContextError: this process must end.
        """
        try:
            return self._read_minibatch(minibatch, width_px)
        except PoisonedContextError:
            raise
        except InferenceError as exc:
            if len(minibatch) == 1:
                return [exc]
        middle = len(minibatch) // 2
        return [
            *self._read_halving(minibatch[:middle], width_px),
            *self._read_halving(minibatch[middle:], width_px),
        ]

    def _read_minibatch(self, minibatch: Sequence[_Unit], width_px: int) -> list[_Reading]:
        """Read crops of one bucket in one run.

        Raises:
            InferenceError: the model's answer does not fit its input.
        """
        # Padding is 0 after normalization, mid gray: dark or stretched edges are read as text.
        shape = (len(minibatch), 3, self._model.crop_height_px, width_px)
        batch = np.zeros(shape, dtype=np.float32)
        for row, unit in zip(batch, minibatch, strict=True):
            bgr = unit.pixels[:, :, ::-1].transpose(2, 0, 1)
            row[:, :, : bgr.shape[2]] = (bgr / np.float32(255) - self._model.mean) / self._model.std
        output = self._session.run(batch)
        class_count = len(self._charset) + 1
        if output.ndim != 3 or output.shape[::2] != (len(minibatch), class_count):  # noqa: PLR2004  (N, T, C)
            raise InferenceError(f"the recognizer answered with the shape {output.shape}")
        return [
            self._place(probabilities, unit.piece.span.start)
            for probabilities, unit in zip(output, minibatch, strict=True)
        ]

    def _place(
        self, probabilities: NDArray[np.float32], start_px: int
    ) -> tuple[PlacedCharacter, ...]:
        classes = probabilities.argmax(axis=1)
        confidences = np.take_along_axis(probabilities, classes[:, np.newaxis], axis=1)[:, 0]
        step_px = self._model.step_px
        return tuple(
            PlacedCharacter(
                text=character.text,
                start_px=start_px + character.step_start * step_px,
                stop_px=start_px + character.step_stop * step_px,
                confidence=character.confidence,
            )
            for character in decode_greedy(classes, confidences, self._charset)
        )


def _join(
    parts: Sequence[tuple[LinePiece, _Reading]],
) -> RecognizedLine | InferenceError:
    readings = []
    for _, reading in parts:
        if isinstance(reading, InferenceError):
            return reading
        readings.append(reading)
    return RecognizedLine(join_pieces([piece for piece, _ in parts], readings))
