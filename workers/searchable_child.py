"""The program that puts hidden text into hostile PDFs: ``python -m workers.searchable_child``.

Its owner is ``workers.pdf_child``, for ``workers.searchable_document``, or for
``workers.unlocked_pdf``, which has it write a file as it is. Like the render child it holds no
secret and is under resource limits; unlike it, it may write to one file, which its owner has
opened.

CONFIG is that of ``workers.render_child`` with ``output_fd`` and ``max_output_bytes``. Requests::

    {"op": "open", "path", "password"}   → {"ok": {"page_count", "can_append"}}
    {"op": "add", "page"}                → {"ok": {}}, page objects in any order
    {"op": "append", "facts"}            → {"ok": {}}, after a copy of the file in the output
    {"op": "write", "facts", "pages"}    → {"ok": {}}, into the empty output; pages: first, last
    {"op": "unlock"}                     → {"ok": {}}, into the empty output, without encryption
"""

import json
import sys
from pathlib import Path
from typing import Any

from workers.limited_child import limit_itself, serve, take_protocol_pipes
from workers.ocr.searchable_pdf import SearchablePdf


class _Child:
    """What the program holds between two requests."""

    def __init__(self, output: Path) -> None:
        self._output = output
        self._document: SearchablePdf | None = None

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["op"] == "open":
            document = SearchablePdf(Path(request["path"]), password=request["password"])
            self._document = document
            return {"page_count": document.page_count, "can_append": document.can_append()}
        document = self._opened()
        match request["op"]:
            case "add":
                document.add_text(request["page"])
            case "append":
                document.append_to(self._output, request["facts"])
            case "write":
                pages = request["pages"]
                wanted = None if pages is None else range(pages[0], pages[1] + 1)
                document.write_to(self._output, request["facts"], pages=wanted)
            case "unlock":
                document.unlock_to(self._output)
            case unknown:
                raise ValueError(f"unknown request {unknown!r}")
        return {}

    def _opened(self) -> SearchablePdf:
        if self._document is None:
            raise ValueError("nothing is open")
        return self._document


def main() -> None:
    """Serve until standard input ends."""
    config = json.loads(sys.argv[1])
    requests, answers = take_protocol_pipes()
    limit_itself(
        memory_bytes=config["memory_bytes"],
        write_bytes=config["max_output_bytes"],
        parent_pid=config["parent_pid"],
    )
    child = _Child(Path(f"/dev/fd/{config['output_fd']}"))
    serve(requests, answers, child.answer)


if __name__ == "__main__":
    main()
