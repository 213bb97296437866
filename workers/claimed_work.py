"""Working on a claimed row: its lease is kept, and a bad end is written down."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from db.engine import Session, Transaction
from workers import failures, lease
from workers.failures import Category, Failure
from workers.lease import Lease
from workers.work_rules import WorkRules

_OVERTIME = "page_timeout"

Claim_contra = TypeVar("Claim_contra", contravariant=True)


class ClaimedRows(Protocol[Claim_contra]):
    """A table whose rows are claimed: ``db.documents`` or ``db.chunks``."""

    def renew(self, session: Session, claim: Claim_contra, /, *, lease_s: float) -> None:
        """Extend the lease."""

    def put_back(
        self, session: Session, claim: Claim_contra, /, *, delay_s: float, is_excused: bool
    ) -> None:
        """Give the row back for a later attempt."""

    def fail(self, session: Session, claim: Claim_contra, /, *, code: str, detail: str) -> None:
        """End the row as failed."""


@contextmanager
def held(
    claim: Claim_contra,
    rows: ClaimedRows[Claim_contra],
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

    def put_back(failure: Failure) -> None:
        delay_s = 0 if failure.category is Category.INTERRUPTED else rules.retry_delay_s
        with transaction() as session:
            if note_failure is not None:
                note_failure(session, failure.code)
            rows.put_back(session, claim, delay_s=delay_s, is_excused=failure.is_excused)

    def fail(failure: Failure) -> None:
        with transaction() as session:
            rows.fail(session, claim, code=failure.code, detail=failure.sentence)

    began_at = time.monotonic()

    def renew() -> None:
        next_renewal_s = time.monotonic() - began_at + rules.lease_s / lease.RENEWALS_PER_LEASE
        with transaction() as session:
            rows.renew(session, claim, lease_s=rules.lease_s)
            if note_failure is not None and next_renewal_s >= rules.overtime_s:
                note_failure(session, _OVERTIME)

    with (
        failures.decided(put_back=put_back, fail=fail),
        lease.kept(renew, lease_s=rules.lease_s) as kept,
    ):
        yield kept
