"""Reading crops: minibatches of one width, and the halving of a minibatch that does not fit."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from workers.ocr.bundle import MANIFEST_NAME, RecognitionModel
from workers.ocr.crop_cache import CropCache, crop_key
from workers.ocr.ctc import decode_greedy, mean_confidence
from workers.ocr.engine_observer import EngineObserver, NobodyObserves
from workers.ocr.errors import (
    InferenceError,
    ModelFileError,
    OutOfMemoryError,
    PoisonedContextError,
)
from workers.ocr.inference import Session
from workers.ocr.long_lines import LinePiece, PlacedCharacter, join_pieces, split_line
from workers.ocr.recognition_limits import RecognitionLimits
from workers.ocr.warm_up import run_shapes
from workers.ocr.width_buckets import bucket_width_px

# Last axis of a graph that chooses the best class itself.
_BEST_CLASS_AND_PROBABILITY: Final = 2
# Columns on which the steps of a model are counted: a bucket of every device.
STEP_PROBE_PX: Final = 320


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


Reading = tuple[PlacedCharacter, ...] | InferenceError


@dataclass(frozen=True, slots=True)
class Minibatch:
    """Inputs of one padded width that go through the model together.

    Attributes:
        positions: of the inputs among all of their plan.
        units: the inputs.
        width_px: to which all are padded; a function of each one alone.
    """

    positions: tuple[int, ...]
    units: tuple[_Unit, ...]
    width_px: int


class RecognitionPlan:
    """How crops go through the model, and what was read so far.

    Minibatches may be read in any order and by any thread.
    """

    def __init__(
        self,
        keys: Sequence[bytes],
        known: Sequence[RecognizedLine | None],
        units: Sequence[_Unit],
        minibatches: Sequence[Minibatch],
    ) -> None:
        """Make a plan of which nothing is read yet.

        Args:
            keys: of the crops; see ``crop_cache``.
            known: for each crop what it says, None where it has to be read.
            units: inputs of the crops that have to be read.
            minibatches: of these inputs.
        """
        self.keys: Final = keys
        self.known: Final = known
        self._units = units
        self._readings: list[Reading | None] = [None] * len(units)
        self.minibatches: Final = tuple(minibatches)

    def put(self, minibatch: Minibatch, readings: Sequence[Reading]) -> None:
        """Keep what was read in a minibatch of this plan."""
        for position, reading in zip(minibatch.positions, readings, strict=True):
            self._readings[position] = reading

    def lines(self) -> list[RecognizedLine | InferenceError]:
        """Return for each crop, in the order given, what it says or why it could not be read.

        Raises:
            ValueError: a minibatch is not read yet.
        """
        parts: dict[int, list[tuple[LinePiece, Reading]]] = defaultdict(list)
        for unit, reading in zip(self._units, self._readings, strict=True):
            if reading is None:
                raise ValueError("a minibatch of the plan is not read yet")
            parts[unit.crop_index].append((unit.piece, reading))
        return [
            _join(parts[crop_index]) if line is None else line
            for crop_index, line in enumerate(self.known)
        ]


def step_problem(model: RecognitionModel, step_count: int) -> str | None:
    """Say what is wrong with a manifest whose model answers ``STEP_PROBE_PX`` in so many steps."""
    if step_count == -(-STEP_PROBE_PX // model.step_px):
        return None
    return (
        f"step_px is {model.step_px}, but {STEP_PROBE_PX} columns give {step_count} steps,"
        f" so it should be {round(STEP_PROBE_PX / max(step_count, 1))}"
    )


class Recognizer:
    """A recognition model behind a session, from crops to characters with their places."""

    def __init__(
        self,
        session: Session,
        model: RecognitionModel,
        charset: Sequence[str],
        limits: RecognitionLimits,
        cache: CropCache | None = None,
        observer: EngineObserver | None = None,
    ) -> None:
        self._observer = observer or NobodyObserves()
        self._cache = CropCache(0) if cache is None else cache
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
        plan = self.plan(crops)
        for minibatch in plan.minibatches:
            plan.put(minibatch, self.read(minibatch))
        return self.lines(plan)

    def plan(self, crops: Sequence[NDArray[np.uint8]]) -> RecognitionPlan:
        """Split long crops, and put crops of one padded width together.

        Args:
            crops: each (crop height of the model, W, 3) uint8 RGB.
        """
        keys = [crop_key(crop) for crop in crops]
        known = [self._known_line(key) for key in keys]
        units = [
            _Unit(crop_index, piece, crop[:, piece.span.start : piece.span.stop])
            for crop_index, crop in enumerate(crops)
            if known[crop_index] is None
            for piece in split_line(crop, self._limits.buckets_px[-1])
        ]
        return RecognitionPlan(keys, known, units, self._minibatches(units))

    def lines(self, plan: RecognitionPlan) -> list[RecognizedLine | InferenceError]:
        """Return for each crop of a plan what it says or why it could not be read.

        A ``ValueError`` says that a minibatch of the plan is not read yet.
        """
        lines = plan.lines()
        for crop_index, line in enumerate(lines):
            if plan.known[crop_index] is None and isinstance(line, RecognizedLine):
                self._cache.put(plan.keys[crop_index], line.characters)
        return lines

    def _known_line(self, key: bytes) -> RecognizedLine | None:
        characters = self._cache.get(key)
        return None if characters is None else RecognizedLine(characters)

    def read(self, minibatch: Minibatch) -> list[Reading]:
        """Read the inputs of a minibatch, halved until the one is found that cannot be read.

        On a CPU several threads may do so at once. A ``PoisonedContextError`` passes through.
        """
        return self._read_halving(minibatch.units, minibatch.width_px)

    def warm_up(self) -> None:
        """Run the shapes that work will bring; see ``warm_up``.

        An ``InferenceError`` of the runtime passes through.
        """
        height = self._model.crop_height_px
        shapes = [(count, height, width) for count, width in self._limits.warm_up_shapes]
        run_shapes(self._session, shapes, model="recognition")

    def check_step(self) -> None:
        """Run an empty input, and see whether the model has the steps that its manifest tells.

        With another ``step_px`` every text is right, and every word's box is wrong.

        Raises:
            ModelFileError: it has others.

        An ``InferenceError`` of the runtime passes through.
        """
        shape = (1, self._model.crop_height_px, STEP_PROBE_PX, 3)
        classes, _ = self._best_classes(self._session.run(np.zeros(shape, dtype=np.uint8)), 1)
        problem = step_problem(self._model, classes.shape[1])
        if problem is not None:
            raise ModelFileError(f"{self._model.file.name}: {problem}; correct {MANIFEST_NAME}")

    def _minibatches(self, units: Sequence[_Unit]) -> list[Minibatch]:
        positions_by_bucket: dict[int, list[int]] = defaultdict(list)
        for position, unit in enumerate(units):
            bucket = bucket_width_px(unit.pixels.shape[1], self._limits.buckets_px)
            positions_by_bucket[bucket].append(position)
        minibatches = []
        # All minibatches of one width before the next: a CUDA session keeps the plan of its last
        # shape only. The widest first: threads that share them then end together.
        for bucket, positions in sorted(positions_by_bucket.items(), reverse=True):
            limit = self._limits.limit(bucket)
            for first in range(0, len(positions), limit):
                part = tuple(positions[first : first + limit])
                minibatches.append(Minibatch(part, tuple(units[i] for i in part), bucket))
        return minibatches

    def _read_halving(self, minibatch: Sequence[_Unit], width_px: int) -> list[Reading]:
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
            if isinstance(exc, OutOfMemoryError):
                self._observer.ran_out_of_memory()
        middle = len(minibatch) // 2
        return [
            *self._read_halving(minibatch[:middle], width_px),
            *self._read_halving(minibatch[middle:], width_px),
        ]

    def _read_minibatch(self, minibatch: Sequence[_Unit], width_px: int) -> list[Reading]:
        """Read crops of one bucket in one run.

        Raises:
            InferenceError: the model's answer does not fit its input.
        """
        # Padding is 0 after normalization, mid gray: dark or stretched edges are read as text.
        count = self._limits.padded_count(len(minibatch), width_px)
        pixels = np.zeros((count, self._model.crop_height_px, width_px, 3), dtype=np.uint8)
        widths_px = np.zeros(count, dtype=np.int64)
        for row, unit in enumerate(minibatch):
            widths_px[row] = unit.pixels.shape[1]
            pixels[row, :, : widths_px[row]] = unit.pixels
        output = self._session.run(pixels, widths_px)
        classes, confidences = self._best_classes(output, count)
        self._observer.minibatch_read(
            inputs=len(minibatch),
            columns_px=int(widths_px.sum()),
            padded_columns_px=count * width_px,
        )
        return [
            self._place(classes[row], confidences[row], unit.piece.span.start)
            for row, unit in enumerate(minibatch)
        ]

    def _best_classes(
        self, output: NDArray[np.float32], count: int
    ) -> tuple[NDArray[np.integer], NDArray[np.float32]]:
        """Return the (N, T) best classes and their probabilities.

        Args:
            output: (N, T, C) probabilities, or (N, T, 2) where the graph chose the class.
            count: N.

        Raises:
            InferenceError: the output has another shape.
        """
        if output.ndim == 3 and len(output) == count:  # noqa: PLR2004  (N, T, C)
            if output.shape[2] == len(self._charset) + 1:
                classes = output.argmax(axis=2)
                best = np.take_along_axis(output, classes[..., np.newaxis], axis=2)[..., 0]
                return classes, best
            if output.shape[2] == _BEST_CLASS_AND_PROBABILITY:
                return output[..., 0].astype(np.int64), output[..., 1]
        raise InferenceError(f"the recognizer answered with the shape {output.shape}")

    def _place(
        self, classes: NDArray[np.integer], confidences: NDArray[np.float32], start_px: int
    ) -> tuple[PlacedCharacter, ...]:
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
    parts: Sequence[tuple[LinePiece, Reading]],
) -> RecognizedLine | InferenceError:
    readings = []
    for _, reading in parts:
        if isinstance(reading, InferenceError):
            return reading
        readings.append(reading)
    return RecognizedLine(join_pieces([piece for piece, _ in parts], readings))
