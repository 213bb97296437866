"""Which files ``pagefleet ocr`` reads, and where the result of each goes."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from workers.ocr.formats import HEAD_BYTES, sniff


@dataclass(frozen=True, slots=True)
class InputFile:
    """One file to read.

    Attributes:
        path: as the user wrote it, or found below a folder that the user named.
        folder: where its result goes below the output folder: the way from the named folder.
    """

    path: Path
    folder: Path = field(default_factory=Path)


@dataclass(frozen=True, slots=True)
class FoundInputs:
    """The files to read, and what a named folder held besides."""

    files: tuple[InputFile, ...]
    skipped: tuple[Path, ...]


def find_inputs(
    named: Iterable[Path], *, on_look: Callable[[int], None] = lambda _: None
) -> FoundInputs:
    """Return the named files, and from named folders all documents below them, by name.

    A file that was named is always read, so that it is refused with a reason. In a folder what
    is no document by its content is skipped; an empty file is not, as it may have been one.

    Args:
        named: files and folders.
        on_look: told how many files were looked at, as this takes a while in a large folder.
    """
    files: list[InputFile] = []
    skipped: list[Path] = []
    for path in named:
        if not os.path.isdir(path):  # noqa: PTH112 - Path.is_dir raises for a name that is too long
            files.append(InputFile(path))
            continue
        for found in _files_below(path):
            if _may_be_document(found):
                files.append(InputFile(found, found.parent.relative_to(path)))
            else:
                skipped.append(found)
            on_look(len(files) + len(skipped))
    return FoundInputs(tuple(files), tuple(skipped))


def output_paths(files: Sequence[InputFile], out_dir: Path, *, suffix: str) -> list[Path]:
    """Return where the result of each file goes: no two to one place, and none over an input.

    ``scan.pdf`` gives ``scan.json``. Where two files of a run would share that name, each keeps
    its own ending (``scan.pdf.json``, ``scan.png.json``), and then a number (``scan.pdf-2.json``).

    Args:
        files: in the order in which numbers are given.
        out_dir: where the results go.
        suffix: of the results, with its dot.
    """
    short = [out_dir / each.folder / (each.path.stem + suffix) for each in files]
    uses = Counter(map(_same_place, short))
    taken = {_same_place(each.path) for each in files}
    chosen = []
    for each, wanted in zip(files, short, strict=True):
        path = wanted
        if uses[_same_place(wanted)] > 1 or _same_place(wanted) in taken:
            path = wanted.with_name(each.path.name + suffix)
        number = 1
        while _same_place(path) in taken:
            number += 1
            path = wanted.with_name(f"{each.path.name}-{number}{suffix}")
        taken.add(_same_place(path))
        chosen.append(path)
    return chosen


def _same_place(path: Path) -> str:
    # Some file systems hold a.json and A.json for one file.
    return os.path.realpath(path).casefold()


def _files_below(folder: Path) -> list[Path]:
    return sorted(Path(parent) / name for parent, _, names in os.walk(folder) for name in names)


def _may_be_document(path: Path) -> bool:
    try:
        # Opening a pipe would wait for somebody who writes to it.
        if not path.is_file():
            return True  # refused with its reason when its turn comes
        with path.open("rb") as stream:
            head = stream.read(HEAD_BYTES)
    except OSError:
        return True  # likewise
    return not head or sniff(head) is not None
