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
    place_of = _Places()
    short = [out_dir / each.folder / (each.path.stem + suffix) for each in files]
    places = [place_of(wanted) for wanted in short]
    uses = Counter(places)
    taken = {place_of(each.path) for each in files}
    chosen = []
    for each, wanted, wanted_place in zip(files, short, places, strict=True):
        path, place = wanted, wanted_place
        if uses[place] > 1 or place in taken:
            path = wanted.with_name(each.path.name + suffix)
            place = place_of(path)
        number = 1
        while place in taken:
            number += 1
            path = wanted.with_name(f"{each.path.name}-{number}{suffix}")
            place = place_of(path)
        taken.add(place)
        chosen.append(path)
    return chosen


class _Places:
    """Tells which paths are one file; each folder is resolved once, as it may hold thousands."""

    def __init__(self) -> None:
        self._folders: dict[str, str] = {}

    def __call__(self, path: Path) -> str:
        folder, name = os.path.split(path)
        if name in {"", os.curdir, os.pardir} or os.path.islink(path):  # noqa: PTH114 - Path.is_link raises for a name that is too long
            return os.path.realpath(path).casefold()
        real = self._folders.get(folder)
        if real is None:
            real = self._folders[folder] = os.path.realpath(folder)
        # Some file systems hold a.json and A.json for one file.
        return os.path.join(real, name).casefold()  # noqa: PTH118 - of 400,000 files


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
