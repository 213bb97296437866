"""The program that opens hostile files: ``python -m workers.render_child CONFIG``.

Its owner is ``workers.render_process``. It holds no secret (its environment is empty), is under
resource limits from before it reads its first document, and ends when its input does.

Protocol: one JSON object a line. CONFIG, a JSON object in the first argument::

    {"parent_pid", "memory_bytes", "pixels_fd", "max_pixels", "max_pages", "max_file_bytes"}

Requests on standard input, each with an ``id`` above 0, which its answer repeats, and with
``cpu_s``, the processor time that it may take::

    {"op": "open", "path", "password"}    → {"ok": {"media_type", "page_count"}}
    {"op": "render", "page_index", "dpi", "mode", "text_order"}
        → {"ok": {"width_px", "height_px", "dpi", "rotation_deg", "render_s",
                  "route", "route_reason", "regions", "layer"}}
    {"op": "close"}                       → {"ok": {}}

First of all it says ``{"id": 0, "ok": {}}``: it is ready. Where a request fails it answers
``{"error": {"code", "message", "limit", "actual"}}`` and serves on, but for ``page_crashed``: it
ran out of memory, and ends, since what an allocator does next is anybody's guess. The pixels of a
page on the route ``ocr`` or ``mixed`` lie in the file ``pixels_fd`` when its answer comes, as
(H, W, 3) uint8 RGB from byte 0, and stay there until the next request. ``workers.ocr.text_layer``
says what a layer and a box are in JSON.
"""

import json
import mmap
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from workers.limited_child import limit_itself, serve, take_protocol_pipes
from workers.ocr.modes import Mode, TextOrder
from workers.ocr.rendered_page import page_to_json
from workers.ocr.sources import PageSource, SourceLimits, open_source

# Parsers write no files. What is left is room for complaints on standard error.
_MAX_WRITE_BYTES: Final = 64 * 1024


@dataclass(slots=True)
class _Child:
    """What the program holds between two requests."""

    limits: SourceLimits
    pixels: mmap.mmap
    source: PageSource | None = None

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        match request["op"]:
            case "open":
                return self._open(Path(request["path"]), request["password"])
            case "render":
                return self._render(
                    request["page_index"], request["dpi"], request["mode"], request["text_order"]
                )
            case "close":
                self._close()
                return {}
            case unknown:
                raise ValueError(f"unknown request {unknown!r}")

    def _open(self, path: Path, password: str | None) -> dict[str, Any]:
        self._close()
        self.source = open_source(path, limits=self.limits, password=password)
        return {"media_type": self.source.media_type, "page_count": self.source.page_count}

    def _render(
        self, page_index: int, dpi: float, mode: Mode, text_order: TextOrder
    ) -> dict[str, Any]:
        if self.source is None:
            raise ValueError("render before open")
        page = self.source.render(
            page_index,
            dpi=dpi,
            max_pixels=self.limits.max_pixels,
            mode=mode,
            text_order=text_order,
        )
        if page.pixels is not None:
            shared = np.frombuffer(self.pixels, np.uint8, count=page.pixels.size)
            shared.reshape(page.pixels.shape)[:] = page.pixels
        return page_to_json(page)

    def _close(self) -> None:
        if self.source is not None:
            self.source.__exit__()
            self.source = None


def main() -> None:
    """Serve until standard input ends."""
    config = json.loads(sys.argv[1])
    requests, answers = take_protocol_pipes()
    limit_itself(
        memory_bytes=config["memory_bytes"],
        write_bytes=_MAX_WRITE_BYTES,
        parent_pid=config["parent_pid"],
    )
    child = _Child(
        limits=SourceLimits(
            max_file_bytes=config["max_file_bytes"],
            max_pages=config["max_pages"],
            max_pixels=config["max_pixels"],
        ),
        pixels=mmap.mmap(config["pixels_fd"], 0),
    )
    serve(requests, answers, child.answer)


if __name__ == "__main__":
    main()
