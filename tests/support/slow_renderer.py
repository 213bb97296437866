"""A renderer with one slow moment."""

from typing import Any

from workers.ocr.errors import PageTimeoutError
from workers.ocr.rendered_page import RenderedPage
from workers.page_renderer import PageRenderer


class SlowOnce(PageRenderer):
    """Takes too long over the first page that it is asked for, and over no other."""

    _was_slow = False

    def render(self, page_index: int, **how: Any) -> RenderedPage:
        if not self._was_slow:
            self._was_slow = True
            raise PageTimeoutError("too long")
        return super().render(page_index, **how)
