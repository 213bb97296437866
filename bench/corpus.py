"""The corpus: files with their true text, as its INDEX.tsv lists them."""

import csv
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.errors import BenchError

PAGE_BREAK = "\f"
KINDS = {
    "all": "",
    "scans": "scan",
    "born-digital": "born-digital",
    "screenshots": "screenshot",
    "handwriting": "handwriting photo",
}


@dataclass(frozen=True, slots=True)
class CorpusFile:
    """One document and what stands on its pages.

    Attributes:
        path: the file.
        name: below the corpus folder, as the index has it.
        kind: ``scan``, ``born-digital``, ``screenshot``, ….
        language: ``en``, ``ja``, …; ``mul`` for several.
        page_texts: the true text of each page, in order.
    """

    path: Path
    name: str
    kind: str
    language: str
    page_texts: tuple[str, ...]


def read_corpus(folder: Path, *, only: str = "all") -> list[CorpusFile]:
    """Return the files of ``accuracy/`` that have a true text, in the order of the index.

    Args:
        folder: with ``INDEX.tsv``.
        only: a key of ``KINDS``.

    Raises:
        BenchError: there is no corpus, or nothing of this kind in it.
    """
    index = folder / "INDEX.tsv"
    if not index.is_file():
        raise BenchError(f"{folder} is no corpus: it has no INDEX.tsv")
    with index.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t"))
    files = [
        _corpus_file(folder, row)
        for row in rows
        if row["area"] == "accuracy"
        and KINDS[only] in {"", row["kind"]}
        and _text_path(folder / row["path"]).is_file()
    ]
    if not files:
        raise BenchError(f"no {only} files with a true text are listed in {index}")
    return files


def spread(files: Sequence[CorpusFile], limit: int) -> list[CorpusFile]:
    """Choose at most ``limit`` files so that every language and kind has its turn."""
    groups: dict[tuple[str, str], list[CorpusFile]] = defaultdict(list)
    for each in files:
        groups[each.language, each.kind].append(each)
    chosen: list[CorpusFile] = []
    while len(chosen) < limit and any(groups.values()):
        chosen.extend(group.pop(0) for group in groups.values() if group)
    kept = {each.name for each in chosen[:limit]}
    return [each for each in files if each.name in kept]


def languages(files: Iterable[CorpusFile]) -> list[str]:
    """Return the languages of files, sorted."""
    return sorted({each.language for each in files})


def _corpus_file(folder: Path, row: dict[str, str]) -> CorpusFile:
    path = folder / row["path"]
    text = _text_path(path).read_text(encoding="utf-8")
    return CorpusFile(
        path, row["path"], row["kind"], row["language"], tuple(text.split(PAGE_BREAK))
    )


def _text_path(path: Path) -> Path:
    return path.with_suffix(".gt.txt")
