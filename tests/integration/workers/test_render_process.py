"""What a child may see and use, and that it ends with its owner."""

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.pdf_files import grey_pages, slow_page_pdf
from tests.support.renderers import (
    MIB,
    SLOW_LEVELS,
    child_of,
    small_renderer,
    wait_for_end,
    written,
)
from workers.ocr.errors import RenderChildError
from workers.page_renderer import PageRenderer, RenderLimits
from workers.render_process import ChildDiedError, ChildOvertimeError, RenderProcess

REPOSITORY = Path(__file__).resolve().parents[3]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@pytest.fixture
def renderer() -> Iterator[PageRenderer]:
    with small_renderer() as made:
        yield made


def test_a_closed_document_is_not_held_open(renderer: PageRenderer, tmp_path: Path) -> None:
    path = written(tmp_path, grey_pages([10]))
    renderer.open(path)
    descriptors = Path(f"/proc/{child_of(renderer)}/fd")
    assert path in {descriptor.resolve() for descriptor in descriptors.iterdir()}

    renderer.close()

    assert path not in {descriptor.resolve() for descriptor in descriptors.iterdir()}


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
