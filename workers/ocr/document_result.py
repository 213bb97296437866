"""The document result (schema ``pagefleet/1``), in pieces, so that it can be streamed.

A writer takes page objects one by one: totals for the header, a text for ``full_text``, the
object itself for ``pages``. ``document_json`` puts the same pieces together in memory.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from workers.ocr.page_text import page_text

SCHEMA: Final = "pagefleet/1"
# Between the texts of two pages in ``full_text``; a page that failed or was left out has an empty
# text, so the n-th part is always the n-th page.
PAGE_SEPARATOR: Final = "\f"

DocumentState = Literal["succeeded", "partly_succeeded", "failed"]


@dataclass(frozen=True, slots=True)
class DocumentSource:
    """The file that a result was made from."""

    filename: str
    sha256: str
    media_type: str
    size_bytes: int


class DocumentTotals:
    """Sums over the page objects of one document, taken one by one."""

    def __init__(self) -> None:
        self._pages_by_state: Counter[str] = Counter()
        self._pages_cached = 0
        self._pixels = 0
        self._crops = 0
        self._seconds = {"render": 0.0, "detect": 0.0, "recognize": 0.0}
        self._is_truncated = False
        self._has_warnings = False
        self._lowest_dpi = math.inf

    def add(self, page: Mapping[str, Any]) -> None:
        """Count one page object."""
        self._pages_by_state[page["state"]] += 1
        if page["state"] != "ok":
            return
        self._pixels += page["width_px"] * page["height_px"]
        self._crops += page["crops_kept"]
        self._pages_cached += bool(page.get("cached"))
        self._is_truncated |= page["truncated"]
        self._has_warnings |= bool(page.get("warnings"))
        self._lowest_dpi = min(self._lowest_dpi, page["dpi"])
        for stage in self._seconds:
            self._seconds[stage] += page["seconds"][stage]

    @property
    def state(self) -> DocumentState:
        """``failed`` when no page has a result, ``succeeded`` when none failed."""
        if not self._pages_by_state["ok"]:
            return "failed"
        return "partly_succeeded" if self._pages_by_state["failed"] else "succeeded"

    @property
    def is_truncated(self) -> bool:
        return self._is_truncated

    def is_whole(self, *, dpi: float) -> bool:
        """Whether all that was asked for was read, as well as could be.

        Args:
            dpi: resolution that no page may be below; 0 for files whose pages have their own.
        """
        is_reduced = self._is_truncated or self._has_warnings or self._lowest_dpi < dpi
        return self.state == "succeeded" and not is_reduced

    def usage(self) -> dict[str, Any]:
        """Return the ``usage`` object."""
        return {
            "pages": self._pages_by_state.total(),
            "pages_ok": self._pages_by_state["ok"],
            "pages_failed": self._pages_by_state["failed"],
            "pages_skipped": self._pages_by_state["skipped"],
            # Left out where there is none, as warnings are.
            **({"pages_cached": self._pages_cached} if self._pages_cached else {}),
            "pixels": self._pixels,
            "crops": self._crops,
            "seconds": {stage: round(seconds, 4) for stage, seconds in self._seconds.items()},
        }

    def header(
        self,
        *,
        document_id: str,
        source: DocumentSource,
        model_version: str | None,
        options: Mapping[str, Any],
        warnings: Sequence[str] = (),
        read_at: str | None = None,
    ) -> dict[str, Any]:
        """Return all fields of the result before ``full_text`` and ``pages``, in their order.

        Args:
            document_id: of the document; any unique text for a result without a server.
            source: the file.
            model_version: of the models that read it; several, separated by ", ", when workers
                were being upgraded; None when none of its pages came to be read.
            options: as ``OcrOptions.model_dump(mode="json")`` gives them.
            warnings: as ``OcrOptions.warnings`` gives them.
            read_at: when an earlier document was read whose pages these are, ISO 8601 in UTC; None:
                they were read for this one.
        """
        return {
            "schema": SCHEMA,
            "document_id": document_id,
            "source": {
                "filename": source.filename,
                "sha256": source.sha256,
                "media_type": source.media_type,
                "size_bytes": source.size_bytes,
            },
            "model_version": model_version,
            "options": dict(options),
            "state": self.state,
            "truncated": self.is_truncated,
            # Left out where there is none, as those of pages are.
            **({"warnings": list(warnings)} if warnings else {}),
            **({"cached": True, "read_at": read_at} if read_at else {}),
            "usage": self.usage(),
        }


def full_text(pages: Iterable[Mapping[str, Any]]) -> str:
    """Return the text of page objects, in their order, a form feed between two pages."""
    return PAGE_SEPARATOR.join(page_text(page) for page in pages)


def document_json(
    pages: Iterable[Mapping[str, Any]],
    *,
    document_id: str,
    source: DocumentSource,
    model_version: str,
    options: Mapping[str, Any],
    warnings: Sequence[str] = (),
) -> dict[str, Any]:
    """Put a whole document result together in memory.

    Args:
        pages: page objects in page order.
        document_id: see ``DocumentTotals.header``, as the others.
        source: likewise.
        model_version: likewise.
        options: likewise.
        warnings: likewise.
    """
    page_list = list(pages)
    totals = DocumentTotals()
    for page in page_list:
        totals.add(page)
    header = totals.header(
        document_id=document_id,
        source=source,
        model_version=model_version,
        options=options,
        warnings=warnings,
    )
    return {**header, "full_text": full_text(page_list), "pages": page_list}
