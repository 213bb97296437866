"""Children that die, hang or run out of memory or time: a page is lost at most, and named."""

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

from tests.support.pdf_files import grey_pages, slow_page_pdf
from tests.support.renderers import (
    BRIEFLY_SLOW_LEVELS,
    MIB,
    SLOW_LEVELS,
    child_of,
    grey_of,
    small_renderer,
    wait_for_end,
    written,
)
from workers.ocr.errors import PageCrashedError, PageTimeoutError, UnreadableDocumentError
from workers.page_renderer import PageRenderer, RenderLimits

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@pytest.fixture
def renderer() -> Iterator[PageRenderer]:
    with small_renderer() as made:
        yield made


def test_a_page_over_time_is_ended_and_the_next_one_works(tmp_path: Path) -> None:
    limits = RenderLimits(max_pixels=10_000, page_timeout_s=0.5)
    with PageRenderer(limits) as renderer:
        renderer.open(written(tmp_path, slow_page_pdf(levels=SLOW_LEVELS)))
        slow_child = child_of(renderer)

        with pytest.raises(PageTimeoutError, match=r"longer than 0\.5 s"):
            renderer.render(1, dpi=72)

        assert wait_for_end(slow_child, timeout_s=0)
        assert grey_of(renderer.render(2, dpi=72)) == 255


def test_a_page_that_was_ready_in_time_is_taken_late(tmp_path: Path) -> None:
    with PageRenderer(RenderLimits(max_pixels=10_000, page_timeout_s=1)) as renderer:
        renderer.open(written(tmp_path, grey_pages([10, 20])))
        pages = renderer.pages([0, 1], dpi=72)
        next(pages)
        select.select([], [], [], 1.1)  # The work of a caller that takes longer than a page may.

        assert grey_of(next(pages)) == 20


def test_a_child_killed_in_the_middle_of_a_page_costs_nothing(
    renderer: PageRenderer, tmp_path: Path
) -> None:
    renderer.open(written(tmp_path, slow_page_pdf(levels=BRIEFLY_SLOW_LEVELS)))
    pages = renderer.pages(range(3), dpi=72)
    next(pages)
    os.kill(child_of(renderer), signal.SIGKILL)

    assert grey_of(next(pages)) < 255
    assert grey_of(next(pages)) == 255


def test_a_page_over_which_two_children_die_is_given_up(
    renderer: PageRenderer, tmp_path: Path
) -> None:
    renderer.open(written(tmp_path, slow_page_pdf(levels=SLOW_LEVELS)))
    killer = threading.Thread(target=kill_at_work, args=(renderer, 2), daemon=True)
    killer.start()

    with pytest.raises(PageCrashedError, match="crashed the program"):
        renderer.render(1, dpi=72)

    killer.join(timeout=10)
    assert not killer.is_alive()  # It got at both.
    assert grey_of(renderer.render(2, dpi=72)) == 255


def cpu_s(pid: int) -> float:
    """Return the processor time that a process has used in user mode."""
    after_name = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2]
    return int(after_name.split()[11]) / os.sysconf("SC_CLK_TCK")


def kill_at_work(renderer: PageRenderer, count: int) -> None:
    """Kill so many children of a renderer, each when it has worked on a page for a while."""
    killed: set[int | None] = {None}
    for _ in range(count):
        while (pid := renderer.child_pid) in killed:
            time.sleep(0.01)
        assert pid is not None
        started_s = cpu_s(pid)
        # Far more than it takes to open the small document.
        while cpu_s(pid) < started_s + 0.5:
            time.sleep(0.01)
        os.kill(pid, signal.SIGKILL)
        killed.add(pid)


def test_a_child_killed_while_it_opens_a_file_costs_nothing(
    renderer: PageRenderer, tmp_path: Path
) -> None:
    path = written(tmp_path, grey_pages([10]))
    renderer.open(path)
    child = child_of(renderer)
    os.kill(child, signal.SIGSTOP)  # It hears nothing any more, and looks as if it worked.
    threading.Timer(0.2, os.kill, (child, signal.SIGKILL)).start()

    assert renderer.open(path).page_count == 1


def test_a_child_killed_between_pages_costs_nothing(renderer: PageRenderer, tmp_path: Path) -> None:
    renderer.open(written(tmp_path, grey_pages([10, 20])))
    renderer.render(0, dpi=72)
    idle_child = child_of(renderer)
    os.kill(idle_child, signal.SIGKILL)
    assert wait_for_end(idle_child, timeout_s=5)

    assert grey_of(renderer.render(1, dpi=72)) == 20


def test_a_page_that_is_done_is_not_lost_with_the_next_one(tmp_path: Path) -> None:
    path = written(tmp_path, grey_pages([10, 20]))
    limits = RenderLimits(max_pixels=10_000, pages_per_child=2)  # opening and one page
    with PageRenderer(limits) as renderer:
        renderer.open(path)
        path.unlink()
        written(tmp_path, b"%PDF-1.7 and nothing after it")
        pages = renderer.pages([0, 1], dpi=72)

        assert grey_of(next(pages)) == 10
        with pytest.raises(UnreadableDocumentError):
            next(pages)


def test_a_page_that_needs_too_much_memory_costs_that_page(tmp_path: Path) -> None:
    limits = RenderLimits(max_pixels=10_000, memory_bytes=256 * MIB)
    with PageRenderer(limits) as renderer:
        # MuPDF lists what it is going to draw, and the list of this page has no end.
        renderer.open(written(tmp_path, slow_page_pdf(levels=SLOW_LEVELS)))

        with pytest.raises(PageCrashedError, match="more than 256 MiB"):
            renderer.render(1, dpi=72)

        assert grey_of(renderer.render(2, dpi=72)) == 255


def test_an_interrupted_wait_does_not_mix_up_pages(renderer: PageRenderer, tmp_path: Path) -> None:
    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    renderer.open(written(tmp_path, slow_page_pdf(levels=BRIEFLY_SLOW_LEVELS)))
    previous = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.1)

    with pytest.raises(KeyboardInterrupt):
        renderer.render(1, dpi=72)
    signal.signal(signal.SIGALRM, previous)

    page = renderer.render(0, dpi=72)
    assert (page.page_index, grey_of(page)) == (0, 255)
    assert grey_of(renderer.render(1, dpi=72)) < 255


def test_a_file_that_takes_too_long_to_open_is_unreadable(tmp_path: Path) -> None:
    # Without a table of its objects it is searched for them.
    path = written(tmp_path, b"%PDF-1.4\n" + b"1 0 obj\n" * 4_000_000)
    limits = RenderLimits(max_pixels=10_000, open_timeout_s=0.01)

    with PageRenderer(limits) as renderer, pytest.raises(UnreadableDocumentError, match=r"0\.01 s"):
        renderer.open(path)
