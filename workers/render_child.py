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

import ctypes
import json
import math
import mmap
import os
import resource
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np

from workers.ocr.errors import DocumentTooLargeError, OcrError, PageCrashedError
from workers.ocr.modes import Mode, TextOrder
from workers.ocr.rendered_page import page_to_json
from workers.ocr.sources import PageSource, SourceLimits, open_source

# Parsers write no files. What is left is room for complaints on standard error.
_MAX_WRITE_BYTES: Final = 64 * 1024
_MAX_OPEN_FILES: Final = 64
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_NO_NEW_PRIVS: Final = 38


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
    requests, answers = _take_protocol_pipes()
    # An import past the size limit would leave a cut .pyc behind, which breaks every later import.
    sys.dont_write_bytecode = True
    _limit_itself(memory_bytes=config["memory_bytes"], parent_pid=config["parent_pid"])
    child = _Child(
        limits=SourceLimits(
            max_file_bytes=config["max_file_bytes"],
            max_pages=config["max_pages"],
            max_pixels=config["max_pixels"],
        ),
        pixels=mmap.mmap(config["pixels_fd"], 0),
    )
    _send(answers, 0, {"ok": {}})
    for line in requests:
        request = json.loads(line)
        answer = _serve(child, request)
        _send(answers, request["id"], answer)
        if answer.get("error", {}).get("code") == PageCrashedError.code:
            return


def _take_protocol_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Keep the pipes for the protocol alone: a library's print must not end up in an answer."""
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    return requests, answers


def _send(answers: BinaryIO, request_id: int, answer: dict[str, Any]) -> None:
    line = json.dumps({"id": request_id, **answer}, ensure_ascii=False)
    # A lone surrogate is no text of anybody's, and must not end the program.
    answers.write(line.encode(errors="replace") + b"\n")
    answers.flush()


def _serve(child: _Child, request: dict[str, Any]) -> dict[str, Any]:
    """Answer one request; what is no fault of the document ends the program, and is seen."""
    _allow_cpu(request["cpu_s"])
    try:
        return {"ok": child.answer(request)}
    except OcrError as error:
        sizes = (
            {"limit": error.limit, "actual": error.actual}
            if isinstance(error, DocumentTooLargeError)
            else {}
        )
        return {"error": {"code": error.code, "message": str(error), **sizes}}
    except MemoryError:
        return {"error": {"code": PageCrashedError.code, "message": "out of memory"}}


def _limit_itself(*, memory_bytes: int, parent_pid: int) -> None:
    _lower(resource.RLIMIT_AS, memory_bytes)
    _lower(resource.RLIMIT_FSIZE, _MAX_WRITE_BYTES)
    _lower(resource.RLIMIT_NOFILE, _MAX_OPEN_FILES)
    _lower(resource.RLIMIT_CORE, 0)
    if sys.platform == "linux":
        prctl = ctypes.CDLL(None, use_errno=True).prctl
        prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        # A closed pipe ends the program between two pages; this one in the middle of a page too.
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    # The owner may have died before the signal was asked for.
    if os.getppid() != parent_pid:
        sys.exit(0)


def _lower(limit: int, value: int) -> None:
    """Set a limit for good, at most what it is already."""
    _, hard = resource.getrlimit(limit)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(limit, (value, value))


def _allow_cpu(cpu_s: float) -> None:
    """Grant processor time for one request, in case the owner is not there to look at the clock."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    # One second more, since the kernel counts whole ones.
    soft = math.ceil(usage.ru_utime + usage.ru_stime + cpu_s) + 1
    resource.setrlimit(
        resource.RLIMIT_CPU, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard)
    )


if __name__ == "__main__":
    main()
