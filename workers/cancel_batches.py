"""End the documents of cancelled batches that the API has not come to, or died before it did."""

import structlog

from db import cancelling
from db.engine import Transaction

log = structlog.get_logger(__name__)

_DOCUMENTS_PER_STEP = 500
_STEPS_PER_ROUND = 8
_BATCHES_PER_ROUND = 20


def cancel_batches(*, transaction: Transaction) -> bool:
    """Go on with batches that were cancelled, oldest first; return whether more is to be done.

    Each step is a transaction of its own: a batch may have hundreds of thousands of documents,
    and what holds them is in nobody's way for long. The state of the batch says that it goes on.

    Raises:
        DatabaseError: the database cannot be asked; what was begun goes on another time.
    """
    with transaction() as session:
        batch_ids = cancelling.unfinished_batches(session, limit=_BATCHES_PER_ROUND)
    steps_left = _STEPS_PER_ROUND
    for batch_id in batch_ids:
        after, is_over = None, False
        while steps_left and not is_over:
            with transaction() as session:
                after = cancelling.cancel_some(
                    session, batch_id, after=after, limit=_DOCUMENTS_PER_STEP
                )
                is_over = after is None
            steps_left -= 1
        if not is_over:
            return True
        with transaction() as session:
            is_finished = cancelling.finish_batch(session, batch_id)
        log.info("batch cancelled", batch_id=str(batch_id), is_finished=is_finished)
    return len(batch_ids) == _BATCHES_PER_ROUND
