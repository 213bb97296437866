"""What every program speaks: a JSON line with pages in, a JSON line a page out.

In: ``{"pages": [{"id", "image", "source", "page_index", "language"}, …]}``. Out: once
``{"ready": {…}}``; for each page ``{"id", "text", "stages", "error"}`` in any order; after the last
``{"done": {"child_peak_bytes": …}}``. Standard library only: it runs in the peers' environments.
"""

import json
import os
import resource
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

_BYTES_PER_KIB = 1024


@dataclass(frozen=True)
class PageRequest:
    """One page to read.

    Attributes:
        id: comes back with the answer.
        image: the page as an uncompressed image file.
        source: the document that it is a page of.
        page_index: 0-based position in the document.
        language: of the text, as the corpus names it.
    """

    id: int
    image: str
    source: str
    page_index: int
    language: str


@dataclass(frozen=True)
class PageAnswer:
    """What a program read: the text, or why there is none; seconds of its stages where known."""

    id: int
    text: str
    stages: dict[str, float] = field(default_factory=dict)
    error: str | None = None


Reader = Callable[[Sequence[PageRequest]], Iterator[PageAnswer]]


def serve(open_reader: Callable[[], tuple[str, Reader]]) -> None:
    """Answer rounds of pages until standard input ends.

    Args:
        open_reader: loads the models; returns the program's name with its version, and what reads.
    """
    answers = _private_output()
    name, read = open_reader()
    _write(answers, {"ready": {"program": name}})
    for line in sys.stdin:
        for answer in read([PageRequest(**page) for page in json.loads(line)["pages"]]):
            _write(answers, asdict(answer))
        _write(answers, {"done": {"child_peak_bytes": _child_peak_bytes()}})


def one_by_one(read_page: Callable[[PageRequest], PageAnswer]) -> Reader:
    """Return a reader that takes page after page; one that fails does not end the others."""

    def read(pages: Sequence[PageRequest]) -> Iterator[PageAnswer]:
        for page in pages:
            try:
                yield read_page(page)
            except Exception as error:  # noqa: BLE001 - a peer may raise anything, and it is recorded
                yield PageAnswer(page.id, "", error=f"{type(error).__name__}: {error}")

    return read


def _private_output() -> int:
    """Keep standard output for answers: whatever else is printed goes to standard error."""
    answers = os.dup(1)
    os.dup2(2, 1)
    return answers


def _write(descriptor: int, record: dict[str, Any]) -> None:
    line = (json.dumps(record, ensure_ascii=False) + "\n").encode()
    while line:
        line = line[os.write(descriptor, line) :]


def _child_peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * _BYTES_PER_KIB
