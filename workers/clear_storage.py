"""Remove objects that nobody is to have: of deleted documents, and of uploads that came to nothing.

Apart from the sweep that dispatches work, which must not wait for a store that is slow or away.
Dying at any point leaves the row, and the next round does it again; two may run at once.
"""

import threading
from uuid import UUID

import structlog

from db import deleting, direct_uploads, uploads
from db.engine import Transaction
from db.errors import DatabaseUnavailableError
from storage import keys
from storage.errors import StorageError, StorageUnavailableError
from storage.object_store import ObjectStore
from workers.work_rules import WorkRules

log = structlog.get_logger(__name__)

_DOCUMENTS_PER_ROUND = 100
_UPLOADS_PER_ROUND = 1_000  # as many keys as one request takes


def clear_storage(*, transaction: Transaction, store: ObjectStore, rules: WorkRules) -> bool:
    """Do one round; return whether there may be more to do at once.

    Raises:
        DatabaseError: the database cannot be asked; what was begun is done again.
    """
    try:
        uploads_are_left = _clear_uploads(transaction, store)
        direct_uploads_are_left = _clear_direct_uploads(transaction, store, rules)
        deletions_are_left = _clear_deleted(transaction, store, rules)
    except StorageUnavailableError:
        # The next ones would wait for the same time-out.
        log.warning("objects not removed, the store is away or slow")
        return False
    return uploads_are_left or direct_uploads_are_left or deletions_are_left


def clear_until(
    stop: threading.Event,
    *,
    transaction: Transaction,
    store: ObjectStore,
    rules: WorkRules,
    interval_s: float,
) -> None:
    """Do round after round until ``stop`` is set, whatever happens in one of them."""
    while not stop.is_set():
        is_busy = False
        try:
            is_busy = clear_storage(transaction=transaction, store=store, rules=rules)
        except DatabaseUnavailableError:
            log.warning("round skipped, the database is not reachable")
        except Exception:
            # Of a thread that ended nobody would hear, and nothing would be deleted any more.
            log.exception("round broken off")
        if not is_busy:
            stop.wait(interval_s)


def _clear_deleted(transaction: Transaction, store: ObjectStore, rules: WorkRules) -> bool:
    with transaction() as session:
        deletions = deleting.take(
            session, limit=_DOCUMENTS_PER_ROUND, backoff_s=rules.dispatch_grace_s
        )
    for deletion in deletions:
        try:
            _remove_objects(deletion.document_id, store)
        except StorageUnavailableError:
            raise
        except StorageError as error:
            log.error("objects not removed", error=str(error))  # noqa: TRY400 - the store said no
            continue
        with transaction() as session:
            deleting.close(session, deletion)
        log.info(
            "document deleted" if deletion.is_last else "objects of a document removed",
            document_id=str(deletion.document_id),
        )
    return len(deletions) == _DOCUMENTS_PER_ROUND


def _clear_uploads(transaction: Transaction, store: ObjectStore) -> bool:
    with transaction() as session:
        expired = uploads.expired(session, limit=_UPLOADS_PER_ROUND)
    if not expired:
        return False
    # Such a document has one object at most: nobody but its upload knew its id.
    try:
        store.delete([keys.source_key(document_id) for document_id in expired])
    except StorageUnavailableError:
        raise
    except StorageError as error:
        log.error("uploads not removed", error=str(error))  # noqa: TRY400 - the store said no
        return False
    with transaction() as session:
        uploads.forget(session, expired)
    log.info("uploads that nobody finished removed", count=len(expired))
    return len(expired) == _UPLOADS_PER_ROUND


def _clear_direct_uploads(transaction: Transaction, store: ObjectStore, rules: WorkRules) -> bool:
    with transaction() as session:
        ended = direct_uploads.take_ended(
            session, limit=_DOCUMENTS_PER_ROUND, backoff_s=rules.dispatch_grace_s
        )
    for upload in ended:
        key = keys.source_key(upload.upload_id)
        try:
            # The parts first: from then on they cannot become an object.
            store.part_uploads.abort(key, upload.parts_id)
            store.delete([key])
        except StorageUnavailableError:
            raise
        except StorageError as error:
            log.error("parts not removed", error=str(error))  # noqa: TRY400 - the store said no
            continue
        with transaction() as session:
            direct_uploads.close(session, upload)
        log.info("parts of an upload removed", upload_id=str(upload.upload_id))
    return len(ended) == _DOCUMENTS_PER_ROUND


def _remove_objects(document_id: UUID, store: ObjectStore) -> None:
    prefix = keys.document_prefix(document_id)
    # Listed to the end first: what is deleted meanwhile must not shift the pages of the listing.
    store.delete([found.key for found in store.list(prefix)])
