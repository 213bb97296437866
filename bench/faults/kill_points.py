"""The points at which ``hook/kill_at.py`` can do harm to a process, by names of functions.

A point is where something is done and not yet known, or known and not yet done. Tests look that
every function is there, so that renaming one does not disarm a fault in silence.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

HOOK_FOLDER = Path(__file__).parent / "hook"

When = Literal["before", "after", "before_commit", "after_commit"]


@dataclass(frozen=True, slots=True)
class KillPoint:
    """A place in a function.

    Attributes:
        target: ``module:function`` or ``module:Class.method``.
        when: the call begins, has returned, or the transaction in which it ran commits or has
            committed; its first argument is then the session.
        task: only calls whose first two arguments name this Celery task.
        page_index: only calls with an argument about this page of a document.
    """

    target: str
    when: When
    task: str = ""
    page_index: int | None = None


_SPLIT, _RECOGNIZE, _ASSEMBLE = "documents.split", "pages.recognize_chunk", "documents.assemble"
_ACKNOWLEDGE = "celery.worker.request:Request.acknowledge"
_CHORD = "celery.backends.redis:RedisBackend"

POINTS: Mapping[str, KillPoint] = {
    "api_after_put": KillPoint("api.source_upload:SourceUpload.finish", "after"),
    "api_after_commit": KillPoint("api.ledger:TenantLedger.add_document", "after"),
    "api_after_publish": KillPoint("api.spared_dispatch:SparedDispatch.send_split", "after"),
    "split_before_rows": KillPoint("db.documents:start_recognizing", "before"),
    "split_before_commit": KillPoint("db.documents:start_recognizing", "before_commit"),
    "split_after_rows": KillPoint("db.documents:start_recognizing", "after_commit"),
    # The first header message is out, the others and the chord's size are not.
    "split_in_chord": KillPoint("celery.app.base:Celery.send_task", "after", _RECOGNIZE),
    "split_before_ack": KillPoint(_ACKNOWLEDGE, "before", _SPLIT),
    "chunk_after_claim": KillPoint("db.chunks:claim", "after_commit"),
    # Its lines are found, and none is read.
    "chunk_in_inference": KillPoint("workers.ocr.engine:OcrEngine._find_lines", "after"),
    # A page that does it every time, to whoever reads it.
    "poison_page": KillPoint("workers.ocr.engine:OcrEngine._find_lines", "before", page_index=3),
    "chunk_after_put": KillPoint("workers.recognize_chunk:store_pages", "after"),
    "chunk_before_commit": KillPoint("db.chunks:publish", "before_commit"),
    "chunk_after_commit": KillPoint("db.chunks:publish", "after_commit"),
    "chunk_before_count": KillPoint(f"{_CHORD}.on_chord_part_return", "before"),
    # The chord is claimed for the body, which is not sent.
    "chunk_after_chord_claim": KillPoint(f"{_CHORD}._chord_publish_claim_expires", "before"),
    "chunk_before_ack": KillPoint(_ACKNOWLEDGE, "before", _RECOGNIZE),
    "assembly_before_claim": KillPoint("db.documents:claim_assembly", "before"),
    "assembly_before_put": KillPoint("db.documents:claim_assembly", "after_commit"),
    "assembly_before_move": KillPoint("db.documents:finish", "before"),
    "assembly_before_commit": KillPoint("db.documents:finish", "before_commit"),
    "assembly_after_commit": KillPoint("db.documents:finish", "after_commit"),
    "assembly_before_ack": KillPoint(_ACKNOWLEDGE, "before", _ASSEMBLE),
    # Nothing but the message says that the image is wanted.
    "draw_in_page": KillPoint("workers.draw_page:_drawn", "before"),
    # The rows are marked as sent, and no message is.
    "sweep_before_publish": KillPoint("workers.recover_stalled:_send", "before"),
    "sweep_after_publish": KillPoint("workers.recover_stalled:_send", "after"),
}


def hook_environment(redis_url: str, points: Mapping[str, KillPoint] = POINTS) -> dict[str, str]:
    """Return the variables of a process in which these points can be armed in this Redis."""
    return {
        "PYTHONPATH": str(HOOK_FOLDER),
        "FAULT_HOOKS": "kill_at",
        "FAULT_POINTS": json.dumps({name: asdict(point) for name, point in points.items()}),
        "FAULT_REDIS_URL": redis_url,
    }
