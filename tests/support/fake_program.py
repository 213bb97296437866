"""A peer for the benchmarks' tests: answers every page with a text that was given to it."""

import sys
from pathlib import Path

from bench.programs.answering import PageAnswer, PageRequest, one_by_one, serve


def read_page(page: PageRequest) -> PageAnswer:
    """Return the text beside the document.

    Raises:
        ValueError: the document's name asks for it.
    """
    source = Path(page.source)
    if "unreadable" in source.name:
        raise ValueError("unreadable")
    assert Path(page.image).read_bytes()[:2] == b"BM"
    print("a peer that chatters on standard output")  # noqa: T201 - as some do
    return PageAnswer(page.id, source.with_suffix(".read.txt").read_text(), {"recognize": 0.5})


if __name__ == "__main__":
    if sys.argv[1:] == ["--broken"]:
        sys.exit("no models here")
    serve(lambda: ("Fake 1.0", one_by_one(read_page)))
