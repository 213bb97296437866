"""Renderers with real children, and looks at these from outside."""

import os
import select
from pathlib import Path

from workers.ocr.page_image import PageFailure
from workers.ocr.rendered_page import RenderedPage
from workers.page_renderer import PageRenderer, RenderLimits

MIB = 2**20
SLOW_LEVELS = 8  # of ``slow_page_pdf``: about 10 min of drawing
BRIEFLY_SLOW_LEVELS = 5  # about 0.5 s


def small_renderer() -> PageRenderer:
    return PageRenderer(RenderLimits(max_pixels=4_000_000))


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
