"""The child that writes a searchable PDF dies or hangs: one page loses its text at most."""

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.results import result_of, split_result
from tests.support.searchable import SIZE_PT, blank_pdf, info_of, lost_words, words_page
from workers.ocr.errors import UnreadableDocumentError
from workers.page_renderer import PageRenderer, RenderLimits
from workers.searchable_document import write_searchable_pdf


def children() -> list[int]:
    """Return the programs that put text into files for this process, running ones."""
    found = Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text().split()
    programs = {int(pid): Path(f"/proc/{pid}/cmdline").read_bytes() for pid in found}
    return [pid for pid, line in programs.items() if b"workers.searchable_child" in line]


class Harmed:
    """Hands out pages, and harms the child before one of them, or after the last, some times."""

    def __init__(self, pages: list[dict[str, Any]], *, before: int, how: int, times: int) -> None:
        self._pages, self._before, self._how, self._times = pages, before, how, times

    def __call__(self) -> Iterator[dict[str, Any]]:
        for index, page in enumerate(self._pages):
            self._harm(index)
            yield page
        self._harm(len(self._pages))

    def _harm(self, index: int) -> None:
        if index == self._before and self._times:
            self._times -= 1
            (child,) = children()
            os.kill(child, self._how)


def make_harmed(source: Path, read_pages: Harmed, pages: list[dict[str, Any]]) -> Path:
    header, _ = split_result(result_of(*pages))
    output = source.with_suffix(".searchable.pdf")
    limits = RenderLimits(page_timeout_s=2, open_timeout_s=20)
    with output.open("w+b") as file, PageRenderer(limits) as unused:
        write_searchable_pdf(source, file, header, read_pages, renderer=unused)
    return output


@pytest.mark.parametrize("before", [0, 1, 2])
def test_a_child_that_ends_once_costs_no_page_its_text(tmp_path: Path, before: int) -> None:
    pages = [words_page(*SIZE_PT), words_page(*SIZE_PT, page_number=2)]
    harmed = Harmed(pages, before=before, how=signal.SIGKILL, times=1)

    made = make_harmed(blank_pdf(tmp_path, page_count=2), harmed, pages)

    assert lost_words(made, pages) == []
    assert info_of(made, "PagefleetPagesWithoutText") == "null"


def test_a_child_that_is_slow_once_costs_no_page_its_text(tmp_path: Path) -> None:
    pages = [words_page(*SIZE_PT), words_page(*SIZE_PT, page_number=2)]
    harmed = Harmed(pages, before=1, how=signal.SIGSTOP, times=1)

    made = make_harmed(blank_pdf(tmp_path, page_count=2), harmed, pages)

    assert lost_words(made, pages) == []


def test_a_page_over_which_the_child_ends_again_stays_without_text(tmp_path: Path) -> None:
    pages = [words_page(*SIZE_PT), words_page(*SIZE_PT, page_number=2)]
    harmed = Harmed(pages, before=1, how=signal.SIGKILL, times=2)

    made = make_harmed(blank_pdf(tmp_path, page_count=2), harmed, pages)

    assert lost_words(made, pages[:1]) == []
    assert info_of(made, "PagefleetPagesWithoutText") == "2"


def test_a_file_over_which_the_child_ends_again_is_a_named_error(tmp_path: Path) -> None:
    pages = [words_page(*SIZE_PT)]
    harmed = Harmed(pages, before=1, how=signal.SIGKILL, times=2)

    with pytest.raises(UnreadableDocumentError):
        make_harmed(blank_pdf(tmp_path), harmed, pages)
