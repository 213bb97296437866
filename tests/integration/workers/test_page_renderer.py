"""The renderer with real child processes."""

import os
import resource
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import numpy as np
import pytest
from PIL import Image

from tests.support.pdf_files import grey_pages, slow_page_pdf
from tests.support.text_pdfs import PROSE, columns_by_rows, prose_page, save, write_lines
from workers.ocr.errors import (
    EncryptedDocumentError,
    FileTooLargeError,
    PageCrashedError,
    PageTimeoutError,
    PageTooLargeError,
    RenderChildError,
    TooManyPagesError,
    UnreadableDocumentError,
)
from workers.ocr.formats import MediaType
from workers.ocr.page_image import PageFailure
from workers.ocr.pdf import PdfSource
from workers.ocr.rendered_page import RenderedPage, page_to_json
from workers.page_renderer import DocumentInfo, PageRenderer, RenderLimits
from workers.render_process import ChildDiedError, ChildOvertimeError, RenderProcess

MIB = 1024 * 1024
SLOW_LEVELS = 8  # about 10 min of drawing
BRIEFLY_SLOW_LEVELS = 5  # about 0.5 s
REPOSITORY = Path(__file__).resolve().parents[3]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@pytest.fixture
def renderer() -> Iterator[PageRenderer]:
    with PageRenderer(RenderLimits(max_pixels=4_000_000)) as made:
        yield made


def written(folder: Path, content: bytes, name: str = "document.pdf") -> Path:
    (folder / name).write_bytes(content)
    return folder / name


def grey_of(outcome: RenderedPage | PageFailure) -> int:
    assert isinstance(outcome, RenderedPage)
    return int(outcome.pixels.mean())


def child_of(renderer: PageRenderer) -> int:
    assert renderer.child_pid is not None
    return renderer.child_pid


def wait_for_end(pid: int, *, timeout_s: float) -> bool:
    """Whether the process ends in time; it need not be a child of this one."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    has_ended = bool(poll.poll(timeout_s * 1000))
    os.close(descriptor)
    return has_ended


def test_a_document_is_described_and_its_pages_are_rendered(
    renderer: PageRenderer, tmp_path: Path
) -> None:
    path = written(tmp_path, grey_pages([40, 80], size_pt=(144, 72)))

    assert renderer.open(path) == DocumentInfo(MediaType.PDF, 2)
    page = renderer.render(1, dpi=100)

    assert (page.page_index, page.dpi, page.rotation_deg) == (1, 100, 0)
    assert page.pixels.shape == (100, 200, 3)
    assert (page.pixels == 80).all()
    assert page.render_s > 0


def test_pixels_are_the_same_as_without_a_child(renderer: PageRenderer, tmp_path: Path) -> None:
    noise = np.random.default_rng(1).integers(0, 256, (301, 199, 3), np.uint8)
    Image.fromarray(noise).save(tmp_path / "noise.png")
    renderer.open(tmp_path / "noise.png")

    assert (renderer.render(0, dpi=200).pixels == noise).all()


def test_pages_come_in_the_order_asked_for(renderer: PageRenderer, tmp_path: Path) -> None:
    renderer.open(written(tmp_path, grey_pages([10, 20, 30, 40])))

    pages = list(renderer.pages([3, 0, 2, 2], dpi=72))

    assert [page.page_index for page in pages] == [3, 0, 2, 2]
    assert [grey_of(page) for page in pages] == [40, 10, 30, 30]


def test_no_pages_are_no_pages(renderer: PageRenderer, tmp_path: Path) -> None:
    renderer.open(written(tmp_path, grey_pages([10])))

    assert list(renderer.pages([], dpi=72)) == []


def test_a_page_stays_as_it_was_when_the_next_one_comes(
    renderer: PageRenderer, tmp_path: Path
) -> None:
    renderer.open(written(tmp_path, grey_pages([10, 20])))
    first = renderer.render(0, dpi=72)
    renderer.render(1, dpi=72)

    assert grey_of(first) == 10


def test_another_page_may_be_rendered_within_an_iteration(
    renderer: PageRenderer, tmp_path: Path
) -> None:
    renderer.open(written(tmp_path, grey_pages([10, 20, 30])))
    pages = renderer.pages([0, 1], dpi=72)

    greys = [grey_of(next(pages)), grey_of(renderer.render(2, dpi=72)), grey_of(next(pages))]

    assert greys == [10, 30, 20]


def test_an_iteration_may_be_left_for_another_document(
    renderer: PageRenderer, tmp_path: Path
) -> None:
    renderer.open(written(tmp_path, grey_pages([10, 20]), "one.pdf"))
    next(renderer.pages([0, 1], dpi=72))
    renderer.open(written(tmp_path, grey_pages([30]), "two.pdf"))

    assert grey_of(renderer.render(0, dpi=72)) == 30


def test_the_child_lives_on_from_document_to_document(
    renderer: PageRenderer, tmp_path: Path
) -> None:
    path = written(tmp_path, grey_pages([10]))
    renderer.open(path)
    first = child_of(renderer)
    renderer.open(path)

    assert child_of(renderer) == first


def test_a_closed_document_is_not_held_open(renderer: PageRenderer, tmp_path: Path) -> None:
    path = written(tmp_path, grey_pages([10]))
    renderer.open(path)
    descriptors = Path(f"/proc/{child_of(renderer)}/fd")
    assert path in {descriptor.resolve() for descriptor in descriptors.iterdir()}

    renderer.close()

    assert path not in {descriptor.resolve() for descriptor in descriptors.iterdir()}


def test_a_fresh_child_takes_over_after_its_share(tmp_path: Path) -> None:
    with PageRenderer(RenderLimits(max_pixels=4_000_000, pages_per_child=3)) as renderer:
        renderer.open(written(tmp_path, grey_pages(range(10, 70, 10))))
        first = child_of(renderer)
        greys = [grey_of(page) for page in renderer.pages(range(6), dpi=72)]

        assert greys == [10, 20, 30, 40, 50, 60]
        assert child_of(renderer) != first


@pytest.mark.parametrize("page_index", [-1, 2])
def test_a_page_that_is_not_there_is_the_callers_fault(
    renderer: PageRenderer, tmp_path: Path, page_index: int
) -> None:
    renderer.open(written(tmp_path, grey_pages([10, 20])))

    with pytest.raises(ValueError, match="of 2 pages"):
        renderer.render(page_index, dpi=72)


def test_a_file_that_is_not_there_is_the_callers_fault(
    renderer: PageRenderer, tmp_path: Path
) -> None:
    with pytest.raises(FileNotFoundError):
        renderer.open(tmp_path / "nothing.pdf")


@pytest.mark.parametrize("name", ["pipe", "link"])
def test_what_is_no_regular_file_is_not_opened(
    renderer: PageRenderer, tmp_path: Path, name: str
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    # Held open, so that a reader would not wait for ever.
    descriptor = os.open(tmp_path / "pipe", os.O_RDWR)
    os.write(descriptor, grey_pages([10]))

    with pytest.raises(OSError, match="no regular file"):
        renderer.open(tmp_path / name)

    os.close(descriptor)


def test_a_relative_path_is_the_callers(
    renderer: PageRenderer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, grey_pages([10]))
    monkeypatch.chdir(tmp_path)

    assert renderer.open(Path("document.pdf")).page_count == 1


@pytest.mark.parametrize(
    "name", ["K\u00e4fer \u6587.pdf", os.fsdecode(b"l\xe9gende.pdf")], ids=ascii
)
def test_a_file_may_have_any_name(renderer: PageRenderer, tmp_path: Path, name: str) -> None:
    renderer.open(written(tmp_path, grey_pages([10]), name))

    assert grey_of(renderer.render(0, dpi=72)) == 10


def test_a_password_reaches_the_document(renderer: PageRenderer, encrypted: Path) -> None:
    with pytest.raises(EncryptedDocumentError):
        renderer.open(encrypted)

    assert renderer.open(encrypted, password="kestrel").page_count == 1  # noqa: S106 - made up


@pytest.fixture
def encrypted(tmp_path: Path) -> Path:
    import pymupdf  # noqa: PLC0415 - of one fixture

    document = pymupdf.open("pdf", grey_pages([10]))
    path = tmp_path / "encrypted.pdf"
    document.save(path, encryption=pymupdf.mupdf.PDF_ENCRYPT_AES_256, user_pw="kestrel")
    return path


def test_limits_come_back_with_their_numbers(tmp_path: Path) -> None:
    path = written(tmp_path, grey_pages([10, 20]))

    few_pages = RenderLimits(max_pixels=10_000, max_pages=1)
    with PageRenderer(few_pages) as renderer, pytest.raises(TooManyPagesError) as pages:
        renderer.open(path)
    few_bytes = RenderLimits(max_pixels=10_000, max_file_bytes=7)
    with PageRenderer(few_bytes) as renderer, pytest.raises(FileTooLargeError) as size:
        renderer.open(path)

    assert (pages.value.limit, pages.value.actual) == (1, 2)
    assert (size.value.limit, size.value.actual) == (7, path.stat().st_size)


def test_a_page_over_the_pixel_cap_is_a_failure_of_that_page(tmp_path: Path) -> None:
    frames = [Image.new("1", size) for size in ((50, 50), (500, 500), (60, 60))]
    path = tmp_path / "frames.tiff"
    frames[0].save(path, "TIFF", save_all=True, append_images=frames[1:])

    with PageRenderer(RenderLimits(max_pixels=10_000)) as renderer:
        renderer.open(path)
        first, second, third = renderer.pages(range(3), dpi=72)

    assert isinstance(first, RenderedPage)
    assert isinstance(second, PageFailure)
    assert (second.page_index, second.code) == (1, PageTooLargeError.code)
    assert isinstance(third, RenderedPage)


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


def test_the_child_ends_with_the_renderer(tmp_path: Path) -> None:
    with PageRenderer(RenderLimits(max_pixels=10_000)) as renderer:
        renderer.open(written(tmp_path, slow_page_pdf(levels=SLOW_LEVELS)))
        next(renderer.pages(range(2), dpi=72))
        child = child_of(renderer)

    assert wait_for_end(child, timeout_s=0)


OWNER = """
import sys
from pathlib import Path
from workers.page_renderer import PageRenderer, RenderLimits

renderer = PageRenderer(RenderLimits(max_pixels=10_000))
renderer.open(Path(sys.argv[1]))
page = next(renderer.pages([0, int(sys.argv[2])], dpi=72))
print(renderer.child_pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("next_page", [1, 2])
def test_the_child_of_a_killed_owner_ends(tmp_path: Path, next_page: int) -> None:
    path = written(tmp_path, slow_page_pdf(levels=SLOW_LEVELS))
    with subprocess.Popen(  # noqa: S603 - made here
        [sys.executable, "-c", OWNER, str(path), str(next_page)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=REPOSITORY,
    ) as owner:
        assert owner.stdout is not None
        child = int(owner.stdout.readline())
        owner.kill()

        assert wait_for_end(child, timeout_s=5)


def test_the_childs_environment_holds_no_secret(
    renderer: PageRenderer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAGEFLEET_S3_SECRET_KEY", "hush")
    renderer.open(written(tmp_path, grey_pages([10])))

    environment = Path(f"/proc/{child_of(renderer)}/environ").read_text(encoding="utf-8")
    names = {entry.partition("=")[0] for entry in environment.split("\0") if entry}

    assert "hush" not in environment
    assert names <= {"PYTHONPATH", "OPENBLAS_NUM_THREADS"}


def test_the_child_is_under_limits(renderer: PageRenderer, tmp_path: Path) -> None:
    renderer.open(written(tmp_path, grey_pages([10])))
    child = child_of(renderer)

    status = Path(f"/proc/{child}/status").read_text(encoding="utf-8")

    assert resource.prlimit(child, resource.RLIMIT_AS) == (2048 * MIB, 2048 * MIB)
    assert resource.prlimit(child, resource.RLIMIT_FSIZE)[1] <= MIB
    assert resource.prlimit(child, resource.RLIMIT_NOFILE)[1] <= 64
    assert resource.prlimit(child, resource.RLIMIT_CORE) == (0, 0)
    assert resource.prlimit(child, resource.RLIMIT_CPU)[0] < 60
    assert "NoNewPrivs:\t1" in status


def test_a_limit_too_low_to_start_is_said_so(tmp_path: Path) -> None:
    path = written(tmp_path, grey_pages([10]))
    limits = RenderLimits(max_pixels=10_000, memory_bytes=8 * MIB)

    with PageRenderer(limits) as renderer, pytest.raises(RenderChildError, match="not start"):
        renderer.open(path)


@contextmanager
def descriptors_left(count: int) -> Iterator[None]:
    """Let this process open ``count`` descriptors more, or fewer where some are in use."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest_free = os.dup(0)
    os.close(lowest_free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free + count, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def open_descriptors() -> set[str]:
    return {path.name for path in Path("/proc/self/fd").iterdir()}


@pytest.mark.parametrize("count", range(0, 8, 2))
def test_a_machine_out_of_descriptors_is_not_the_documents_fault(count: int) -> None:
    before = open_descriptors()

    with descriptors_left(count), pytest.raises(RenderChildError, match="Too many open files"):
        RenderProcess(memory_bytes=2048 * MIB, max_pixels=10_000, max_pages=1, max_file_bytes=MIB)

    assert open_descriptors() == before


def test_a_file_that_takes_too_long_to_open_is_unreadable(tmp_path: Path) -> None:
    # Without a table of its objects it is searched for them.
    path = written(tmp_path, b"%PDF-1.4\n" + b"1 0 obj\n" * 4_000_000)
    limits = RenderLimits(max_pixels=10_000, open_timeout_s=0.01)

    with PageRenderer(limits) as renderer, pytest.raises(UnreadableDocumentError, match=r"0\.01 s"):
        renderer.open(path)


def test_a_child_that_claims_more_pixels_than_there_are_is_ended() -> None:
    child = RenderProcess(
        memory_bytes=2048 * MIB, max_pixels=10_000, max_pages=1, max_file_bytes=MIB
    )

    with pytest.raises(ChildDiedError):
        child.copy_pixels(10_000, 10_000)

    assert not child.is_alive


def test_a_child_out_of_processor_time_is_over_time(tmp_path: Path) -> None:
    path = written(tmp_path, slow_page_pdf(levels=SLOW_LEVELS))
    child = RenderProcess(
        memory_bytes=2048 * MIB, max_pixels=10_000, max_pages=10, max_file_bytes=MIB
    )
    child.ask({"op": "open", "path": str(path), "password": None}, timeout_s=30)
    child.receive()
    child.ask(
        {"op": "render", "page_index": 1, "dpi": 72, "mode": "ocr", "text_order": "reading"},
        timeout_s=0.1,
    )

    assert wait_for_end(child.pid, timeout_s=30)
    with pytest.raises(ChildOvertimeError):
        child.receive()


def test_a_layer_is_the_same_as_without_a_child(renderer: PageRenderer, tmp_path: Path) -> None:
    document, page = prose_page()
    write_lines(page, ["\u65e5\u672c\u8a9e"], top_pt=400, fontname="japan")
    path = save(document, tmp_path)
    renderer.open(path)

    received = renderer.render(0, dpi=200, mode="auto")

    with PdfSource(path) as source:
        read = source.render(0, dpi=200, max_pixels=4_000_000, mode="auto")
    assert page_to_json(received)["layer"] == page_to_json(read)["layer"]
    assert [line.text for line in received.layer.lines] == [*PROSE, "\u65e5\u672c\u8a9e"]


def test_a_page_without_pixels_leaves_those_of_another_alone(
    renderer: PageRenderer, tmp_path: Path
) -> None:
    document, _ = prose_page()
    document.new_page().draw_circle((100, 100), 50)
    path = save(document, tmp_path)
    renderer.open(path)

    pages = list(renderer.pages([1, 0], dpi=72, mode="auto"))

    assert [page.decision.route for page in pages if isinstance(page, RenderedPage)] == [
        "ocr",
        "text",
    ]
    assert isinstance(pages[0], RenderedPage)
    assert pages[0].pixels is not None
    assert pages[0].pixels.min() < 255


def test_a_page_asked_for_in_another_mode_is_asked_for_again(
    renderer: PageRenderer, tmp_path: Path
) -> None:
    document, _ = prose_page()
    renderer.open(save(document, tmp_path))
    renderer.render(0, dpi=72, mode="auto")

    assert renderer.render(0, dpi=72, mode="ocr").pixels is not None


def test_a_page_asked_for_in_another_text_order_is_asked_for_again(
    renderer: PageRenderer, tmp_path: Path
) -> None:
    document, page = prose_page([])
    stated = columns_by_rows(page)
    renderer.open(save(document, tmp_path))

    read = renderer.render(0, dpi=72, mode="auto")
    kept = renderer.render(0, dpi=72, mode="auto", text_order="file")

    assert [line.text for line in read.layer.lines] == [*stated[::2], *stated[1::2]]
    assert [line.text for line in kept.layer.lines] == stated


def test_pages_come_in_the_text_order_that_is_asked_for(
    renderer: PageRenderer, tmp_path: Path
) -> None:
    document, page = prose_page([])
    stated = columns_by_rows(page)
    columns_by_rows(document.new_page(width=595, height=842))
    renderer.open(save(document, tmp_path))

    pages = list(renderer.pages(range(2), dpi=72, mode="auto", text_order="file"))

    assert [
        [line.text for line in page.layer.lines] for page in pages if isinstance(page, RenderedPage)
    ] == [stated, stated]
