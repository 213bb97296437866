"""What became of a page: its entry in the object of its chunk, and in the ledger."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from db.chunks import PageRecord
from db.states import PageState
from workers.ocr.page_image import PageFailure
from workers.ocr.result import PageResult, page_json


@dataclass(frozen=True, slots=True)
class PageOutcome:
    """One page, read or failed.

    Attributes:
        record: what the ledger keeps of it, but for where its result lies.
        body: its page object.
    """

    record: PageRecord
    body: Mapping[str, Any]


def outcome_of(
    result: PageResult | PageFailure, model_version: str, *, content_key: bytes | None = None
) -> PageOutcome:
    """Return the outcome of a page that the reader gave back.

    Args:
        result: of the page.
        model_version: of the models that read it.
        content_key: by which other pages may be served from it; None: it must serve none.
    """
    values: dict[str, Any] = {"model_version": model_version}
    if isinstance(result, PageFailure):
        state = PageState.FAILED
        values |= {"error_code": result.code, "error_detail": result.message}
    else:
        state = PageState.OK
        values |= {
            "route": result.route,
            "crops_found": result.crops_found,
            "crops_kept": result.crops_kept,
            "truncated": result.is_truncated,
            "line_count": len(result.lines),
            "mean_confidence": result.mean_confidence,
            "rotation_deg": result.rotation_deg,
            "durations": asdict(result.seconds),
            "content_key": content_key,
        }
    return PageOutcome(PageRecord(result.page_index, state, values), page_json(result))
