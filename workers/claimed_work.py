"""Working on a claimed row: its lease is kept, and a bad end is written down."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from db.engine import Session, Transaction
from workers import failures, lease
from workers.failures import Category, Failure
from workers.lease import Lease
from workers.work_rules import WorkRules

Claim_contra = TypeVar("Claim_contra", contravariant=True)


class ClaimedRows(Protocol[Claim_contra]):
    """A table whose rows are claimed: ``db.documents`` or ``db.chunks``."""

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


@contextmanager
def held(
    claim: Claim_contra,
    rows: ClaimedRows[Claim_contra],
    *,
    transaction: Transaction,
    rules: WorkRules,
) -> Iterator[Lease]:
    """Do the work of a claim inside the block; see ``workers.failures.decided`` for its ends.

    Yields:
        The lease; whoever works asks it between two steps whether the row is still his.
    """

    def put_back(failure: Failure) -> None:
        delay_s = 0 if failure.category is Category.INTERRUPTED else rules.retry_delay_s
        with transaction() as session:
            rows.put_back(session, claim, delay_s=delay_s, is_excused=failure.is_excused)

    def fail(failure: Failure) -> None:
        with transaction() as session:
            rows.fail(session, claim, code=failure.code, detail=failure.sentence)

    def renew() -> None:
        with transaction() as session:
            rows.renew(session, claim, lease_s=rules.lease_s)

    def look() -> None:
        with transaction() as session:
            rows.require_held(session, claim)

    with (
        failures.decided(put_back=put_back, fail=fail),
        lease.kept(renew, look=look, lease_s=rules.lease_s) as kept,
    ):
        yield kept
