"""Working on a claimed row: its lease is kept, and a bad end is written down."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from db import known_outcome
from db.engine import Session, Transaction
from db.errors import DatabaseError
from workers import failures, lease
from workers.failures import Category, Failure
from workers.lease import Lease
from workers.work_rules import WorkRules

_OVERTIME = "page_timeout"

Claim = TypeVar("Claim")
Work = TypeVar("Work")
Claim_contra = TypeVar("Claim_contra", contravariant=True)


class ClaimedRows(Protocol[Claim_contra]):
    """A table whose rows are claimed: ``db.documents`` or ``db.chunks``."""

    def is_held(self, session: Session, claim: Claim_contra, /, *, worker: str) -> bool:
        """Say whether the row is this worker's."""

    def renew(self, session: Session, claim: Claim_contra, /, *, lease_s: float) -> None:
        """Extend the lease."""

    def require_held(self, session: Session, claim: Claim_contra, /) -> None:
        """Ask whether the row is still held by this claim."""

    def put_back(
        self, session: Session, claim: Claim_contra, /, *, delay_s: float, is_excused: bool
    ) -> None:
        """Give the row back for a later attempt."""

    def fail(self, session: Session, claim: Claim_contra, /, *, code: str, detail: str) -> None:
        """End the row as failed."""


def take(
    claim: Callable[[Session], Claim | None],
    rows: ClaimedRows[Claim],
    *,
    read: Callable[[Session, Claim], Work],
    transaction: Transaction,
    rules: WorkRules,
) -> Work | None:
    """Claim a row, and read what its work needs; None: there is nothing to claim.

    A claim whose COMMIT got lost on the way is found again, since nobody else would work on it
    until its lease has ended. One that a signal to end came in between is given back.

    Args:
        claim: claims the row, if it may be.
        rows: its table.
        read: reads in the transaction of the claim.
        transaction: opens a transaction.
        rules: who claims.

    Raises:
        SystemExit: this worker is being stopped.

    Errors of ``known_outcome.commit`` pass through.
    """
    claimed: Claim | None = None
    work: Work | None = None

    def change(session: Session) -> None:
        nonlocal claimed, work
        claimed = claim(session)
        work = None if claimed is None else read(session, claimed)

    def stands(session: Session, _: None) -> bool:
        nonlocal work
        if claimed is None:
            return True
        is_held = rows.is_held(session, claimed, worker=rules.worker)
        if is_held:
            # What was read before went with its session.
            work = read(session, claimed)
        return is_held

    def give_back(session: Session) -> None:
        if claimed is not None and rows.is_held(session, claimed, worker=rules.worker):
            rows.put_back(session, claimed, delay_s=0, is_excused=True)

    try:
        known_outcome.commit(transaction, change, stands=stands)
    except SystemExit:
        with suppress(DatabaseError), transaction() as session:
            give_back(session)
        raise
    return work


@contextmanager
def held(
    claim: Claim,
    rows: ClaimedRows[Claim],
    *,
    transaction: Transaction,
    rules: WorkRules,
    note_failure: Callable[[Session, str], None] | None = None,
) -> Iterator[Lease]:
    """Do the work of a claim inside the block; see ``workers.failures.decided`` for its ends.

    Args:
        claim: the right to the row.
        rows: its table.
        transaction: opens a transaction.
        rules: the length of the lease, and of the rest after a failure.
        note_failure: records the code of an attempt that failed, and ``page_timeout`` while one
            lasts so long that its process may be ended for it before the next renewal.

    Yields:
        The lease; whoever works asks it between two steps whether the row is still his.
    """
    row = _HeldRow(claim, rows, transaction, rules, note_failure)
    with (
        failures.decided(put_back=row.put_back, fail=row.fail),
        lease.kept(row.renew, look=row.look, lease_s=rules.lease_s) as kept,
    ):
        yield kept


@dataclass(frozen=True, slots=True)
class _HeldRow(Generic[Claim]):
    """What is done to a row while it is held, and at the end of that; see ``held``."""

    claim: Claim
    rows: ClaimedRows[Claim]
    transaction: Transaction
    rules: WorkRules
    note_failure: Callable[[Session, str], None] | None
    began_at_s: float = field(default_factory=time.monotonic)

    def put_back(self, failure: Failure) -> None:
        delay_s = 0 if failure.category is Category.INTERRUPTED else self.rules.retry_delay_s

        def change(session: Session) -> None:
            if self.note_failure is not None:
                self.note_failure(session, failure.code)
            self.rows.put_back(session, self.claim, delay_s=delay_s, is_excused=failure.is_excused)

        self._end(change)

    def fail(self, failure: Failure) -> None:
        self._end(
            lambda session: self.rows.fail(
                session, self.claim, code=failure.code, detail=failure.sentence
            )
        )

    def renew(self) -> None:
        held_s = time.monotonic() - self.began_at_s
        next_renewal_s = held_s + self.rules.lease_s / lease.RENEWALS_PER_LEASE
        with self.transaction() as session:
            self.rows.renew(session, self.claim, lease_s=self.rules.lease_s)
            if self.note_failure is not None and next_renewal_s >= self.rules.overtime_s:
                self.note_failure(session, _OVERTIME)

    def look(self) -> None:
        with self.transaction() as session:
            self.rows.require_held(session, self.claim)

    def _end(self, change: Callable[[Session], None]) -> None:
        known_outcome.commit(
            self.transaction,
            change,
            stands=lambda session, _: (
                not self.rows.is_held(session, self.claim, worker=self.rules.worker)
            ),
        )
