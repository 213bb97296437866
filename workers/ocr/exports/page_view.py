"""What all formats ask of a page object: its blocks, lines, words and what is amiss with it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Page = Mapping[str, Any]
Header = Mapping[str, Any]
Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class ExportWord:
    """A word; ``box`` is x_min, y_min, x_max, y_max in page pixels.

    ``is_spaced`` says whether a space stands between it and the next word of its line.
    """

    text: str
    box: Box
    is_spaced: bool


@dataclass(frozen=True, slots=True)
class ExportLine:
    """A line; ``box`` holds its polygon and all its words."""

    id: int
    text: str
    polygon: tuple[tuple[float, float], ...]
    confidence: float
    box: Box
    words: tuple[ExportWord, ...]


@dataclass(frozen=True, slots=True)
class ExportBlock:
    """Lines that belong together, in reading order; ``box`` holds them all."""

    id: int
    box: Box
    lines: tuple[ExportLine, ...]


def blocks_of(page: Page) -> Iterator[ExportBlock]:
    """Yield the blocks of a page in reading order; a page without a result has none."""
    for block in page.get("blocks", ()):
        lines = tuple(_line(page["lines"][line_id]) for line_id in block["lines"])
        yield ExportBlock(block["id"], _around([line.box for line in lines]), lines)


def is_failed(page: Page) -> bool:
    """Whether the page has no result."""
    return bool(page["state"] != "ok")


def notices(page: Page) -> list[str]:
    """Return sentences about what is missing from a page; none where nothing is."""
    number = page["page_number"]
    if page["state"] == "failed":
        error = page["error"]
        return [f"Page {number} has no result ({error['code']}): {error['message']}"]
    if page["state"] != "ok":
        return [f"Page {number} was left out."]
    found = []
    if page["truncated"]:
        found.append(
            f"Page {number} has more text lines than are recognized: {page['crops_kept']} of "
            f"{page['crops_found']} were read."
        )
    if "reduced_resolution" in page.get("warnings", ()):
        found.append(f"Page {number} could only be read at half the resolution.")
    return found


def _line(line: Mapping[str, Any]) -> ExportLine:
    polygon = tuple((float(x), float(y)) for x, y in line["polygon"])
    xs, ys = [x for x, _ in polygon], [y for _, y in polygon]
    outline = (min(xs), min(ys), max(xs), max(ys))
    words = _words(line, outline)
    return ExportLine(
        id=line["id"],
        text=line["text"],
        polygon=polygon,
        confidence=line["confidence"],
        box=_around([outline, *(word.box for word in words)]),
        words=words,
    )


def _words(line: Mapping[str, Any], outline: Box) -> tuple[ExportWord, ...]:
    """Return the line's words; the line as one word where they are not all of its text."""
    text = line["text"]
    words: list[ExportWord] = []
    place = 0
    for word in line["words"]:
        start = text.find(word["text"], place)
        if start < 0 or text[place:start].strip():
            break
        place = start + len(word["text"])
        is_spaced = text[place : place + 1].isspace()
        words.append(ExportWord(word["text"], _box(word["box"]), is_spaced))
    if not words or text[place:].strip() or len(words) < len(line["words"]):
        return (ExportWord(text, outline, is_spaced=False),)
    last = words[-1]
    return (*words[:-1], ExportWord(last.text, last.box, is_spaced=False))


def _box(stated: Sequence[float]) -> Box:
    x_min, y_min, x_max, y_max = stated
    return float(x_min), float(y_min), float(x_max), float(y_max)


def _around(boxes: list[Box]) -> Box:
    return (
        min(box[0] for box in boxes),
        min(box[1] for box in boxes),
        max(box[2] for box in boxes),
        max(box[3] for box in boxes),
    )
