"""A page that has its outcome: what goes into the object of its chunk, and into the ledger."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from db.states import PageState
from workers.ocr.page_image import PageFailure
from workers.ocr.result import PageResult, page_json


@dataclass(frozen=True, slots=True)
class ReadPage:
    """One page, read or failed.

    Attributes:
        page_index: 0-based position in the document.
        state: ``ok`` or ``failed``.
        body: its page object.
        columns: of its row, but for where its result lies.
    """

    page_index: int
    state: PageState
    body: Mapping[str, Any]
    columns: Mapping[str, Any]


def read_page(
    outcome: PageResult | PageFailure, model_version: str, *, content_key: bytes | None = None
) -> ReadPage:
    """Make a page of what the reader gave.

    Args:
        outcome: of the page.
        model_version: of the models that read it.
        content_key: by which other pages may be served from it; None: it must serve none.
    """
    columns: dict[str, Any] = {"model_version": model_version}
    if isinstance(outcome, PageFailure):
        state = PageState.FAILED
        columns |= {"error_code": outcome.code, "error_detail": outcome.message}
    else:
        state = PageState.OK
        columns |= {
            "route": outcome.route,
            "crops_found": outcome.crops_found,
            "crops_kept": outcome.crops_kept,
            "truncated": outcome.is_truncated,
            "line_count": len(outcome.lines),
            "mean_confidence": outcome.mean_confidence,
            "rotation_deg": outcome.rotation_deg,
            "durations": asdict(outcome.seconds),
            "content_key": content_key,
        }
    return ReadPage(outcome.page_index, state, page_json(outcome), columns)
