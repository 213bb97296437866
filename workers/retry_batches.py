"""Start over the documents of batches that are retried and that the API has not come to."""

import structlog

from db import batch_retrying
from db.engine import Transaction

log = structlog.get_logger(__name__)

_DOCUMENTS_PER_STEP = 50
_STEPS_PER_ROUND = 8
_BATCHES_PER_ROUND = 20


def retry_batches(*, transaction: Transaction) -> bool:
    """Go on with batches that are retried, oldest first; return whether more is to be done.

    Each step is a transaction of its own, of few documents: to start one over takes several
    statements, and what holds them is in nobody's way for long.

    Raises:
        DatabaseError: the database cannot be asked; what was begun goes on another time.
    """
    with transaction() as session:
        batch_ids = batch_retrying.unfinished(session, limit=_BATCHES_PER_ROUND)
    steps_left = _STEPS_PER_ROUND
    for batch_id in batch_ids:
        started = 0
        while steps_left:
            with transaction() as session:
                count = batch_retrying.retry_some(session, batch_id, limit=_DOCUMENTS_PER_STEP)
            steps_left -= 1
            started += count
            if not count:
                break
        log.info("batch retried", batch_id=str(batch_id), documents=started)
        if not steps_left:
            return True
    return len(batch_ids) == _BATCHES_PER_ROUND
