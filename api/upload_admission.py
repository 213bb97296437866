"""Whether an upload may begin, go on and be accepted: room in the system, and its key's quota."""

from collections.abc import Mapping

from api.admission import Admission
from api.errors import ApiError
from api.ledger import TenantLedger
from db.states import Priority


def require_admission(
    idempotency_key: str | None, ledger: TenantLedger, admission: Admission
) -> None:
    """Refuse an upload of which nothing but its head is known, where no other answer can come.

    Raises:
        ApiError: the key's quota is used up, or the system is full for every priority.
        DatabaseError: the database cannot be asked.
    """
    _require_quota(idempotency_key, ledger, admission)
    require_room(None, idempotency_key, ledger, admission)


def stated_lane(fields: Mapping[str, str]) -> Priority | None:
    """Return the priority that the fields before a file settle; None when they leave it open."""
    stated = fields.get("priority")
    if stated in set(Priority):
        return Priority(stated)
    return Priority.BULK if fields.get("batch_id") else None


def require_room(
    priority: Priority | None,
    idempotency_key: str | None,
    ledger: TenantLedger,
    admission: Admission,
) -> None:
    """Refuse a document while the system is full, unless an earlier request made it already.

    Args:
        priority: the document's; None where it is not known yet.
        idempotency_key: of the request.
        ledger: of whoever sends it.
        admission: knows how much is open.

    Raises:
        ApiError: there is no room.
        DatabaseError: the database cannot be asked.
    """
    try:
        admission.require_room(priority)
    except ApiError:
        if not _is_known(idempotency_key, ledger):
            raise


def _require_quota(idempotency_key: str | None, ledger: TenantLedger, admission: Admission) -> None:
    """Refuse a document of a key whose quota is used up, before its bytes are taken.

    What decides is that it is counted when the document is added.

    Raises:
        ApiError: the quota is used up.
        DatabaseError: the database cannot be asked.
    """
    use = ledger.key_use()
    if use.is_used_up and not _is_known(idempotency_key, ledger):
        raise admission.refusal_of(use)


def _is_known(idempotency_key: str | None, ledger: TenantLedger) -> bool:
    return idempotency_key is not None and ledger.document_of_key(idempotency_key) is not None
