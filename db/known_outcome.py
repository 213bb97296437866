"""Changes whose COMMIT may get lost: the rows are asked what became of it.

A connection that dies in a COMMIT leaves open whether it took effect. Every change of a row that is
held carries its fencing token, so the row knows the answer, and doing it once more is safe.
"""

import threading
from collections.abc import Callable
from typing import TypeVar

from db.engine import Session, Transaction
from db.errors import DatabaseUnavailableError, OutcomeUnknownError

T = TypeVar("T")

_TRIES = 3
# Before each question: a server that starts again is away for a moment.
_PAUSES_S = (0.1, 0.5, 2.0, 4.0)


def commit(
    transaction: Transaction,
    change: Callable[[Session], T],
    *,
    stands: Callable[[Session, T], bool],
) -> T:
    """Make a change in a transaction of its own and return what ``change`` returned.

    Where the outcome of the COMMIT is unknown, the change is made again unless it stands.

    Args:
        transaction: opens a transaction.
        change: makes the change; safe to do again where it did not take effect.
        stands: says, in a new transaction, whether it took effect. It locks the row that it looks
            at, because the server may still be about to commit.

    Raises:
        OutcomeUnknownError: the database stays away, or loses one COMMIT after the other.

    Errors of ``change`` pass through.
    """
    lost: OutcomeUnknownError | None = None
    for _ in range(_TRIES):
        try:
            with transaction() as session:
                answer = change(session)
        except OutcomeUnknownError as error:
            lost = error
            if _ask(transaction, answer, stands, lost):
                return answer
        else:
            return answer
    assert lost is not None  # noqa: S101 - the loop ends early otherwise, for the type checker
    raise lost


def _ask(
    transaction: Transaction,
    answer: T,
    stands: Callable[[Session, T], bool],
    lost: OutcomeUnknownError,
) -> bool:
    for pause_s in _PAUSES_S:
        threading.Event().wait(pause_s)
        try:
            with transaction() as session:
                return stands(session, answer)
        except DatabaseUnavailableError:
            continue
    raise lost
