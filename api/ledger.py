"""What one tenant can see and add: the one place where queries are filtered by tenant.

Operations are given a ``TenantLedger`` and no transaction, so none can forget whose rows it
reads. What belongs to another tenant is not found.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

from fastapi import Depends, Request

from api.auth import KeyId, Tenant
from api.services import Services
from db import (
    admission,
    batch_report,
    batch_retrying,
    batches,
    cancelling,
    deleting,
    document_sources,
    documents,
    events,
    exports,
    listings,
    pages,
    retrying,
    uploads,
)
from db.admission import KeyUse
from db.batch_report import ReportedDocument
from db.batches import BatchCounts
from db.engine import Session, Transaction
from db.errors import RowNotFoundError
from db.events import Event
from db.exports import Requested
from db.ids import new_id
from db.intake_models import BatchListing
from db.models import Batch, Document, Page
from db.retrying import Retry
from db.states import DocumentState, PageState

PageCounts = Mapping[PageState, int]
EndUpload = Callable[[Session, UUID], bool]
"""Takes the note of an upload away when its document is added; False: it is gone."""

# In one transaction, in less than a second.
_CANCELLED_AT_ONCE = 1_000
# Likewise; each takes several statements.
_RETRIED_AT_ONCE = 50

# While its pages are recognized, a document's own counts are not filled in yet.
_COUNTED_STATES = frozenset({DocumentState.RECOGNIZING, DocumentState.ASSEMBLING})


class QuotaUsedUpError(Exception):
    """The key had used up a quota before; ``use`` says which."""

    def __init__(self, use: KeyUse) -> None:
        super().__init__("the quota of the key is used up")
        self.use = use


class UploadExpiredError(Exception):
    """The upload took so long that its object counts as left behind."""


class BatchClosedError(Exception):
    """The batch took no more documents when the row was to be inserted."""


@dataclass(frozen=True, slots=True)
class DocumentEntry:
    """A document and, while its pages are worked on, how many of them stand where."""

    document: Document
    page_counts: PageCounts | None


class TenantLedger:
    """Reads and writes of one tenant; every method is one transaction.

    A method that is given an id raises ``RowNotFoundError`` when the tenant has no such row,
    and all raise ``DatabaseError`` and its subclasses.
    """

    def __init__(self, transaction: Transaction, tenant: str, *, key_id: str | None = None) -> None:
        self._transaction = transaction
        self.tenant = tenant
        self.key_id = key_id

    def document(self, document_id: UUID) -> DocumentEntry:
        with self._transaction() as session:
            document = documents.get(session, document_id, tenant=self.tenant)
            counts = pages.count_by_state(session, _counted([document]))
        return DocumentEntry(document, counts.get(document_id))

    def documents(
        self,
        *,
        limit: int,
        batch_id: UUID | None = None,
        state: DocumentState | None = None,
        before: UUID | None = None,
    ) -> Sequence[DocumentEntry]:
        """Return documents newest first, those older than ``before`` only."""
        with self._transaction() as session:
            found = documents.list_page(
                session,
                tenant=self.tenant,
                limit=limit,
                batch_id=batch_id,
                state=state,
                before=before,
            )
            counts = pages.count_by_state(session, _counted(found))
        return [DocumentEntry(document, counts.get(document.id)) for document in found]

    def document_of_key(self, idempotency_key: str) -> DocumentEntry | None:
        """Return the document that was accepted under this Idempotency-Key, if any."""
        with self._transaction() as session:
            document = documents.find_by_idempotency_key(
                session, tenant=self.tenant, key=idempotency_key
            )
        return None if document is None else self.document(document.id)

    def key_use(self) -> KeyUse:
        """Return the quotas of the key that asks, and what it has used of them."""
        if self.key_id is None:
            return KeyUse()
        with self._transaction() as session:
            return admission.key_use(session, tenant=self.tenant, key_id=self.key_id)

    def begin_upload(self, document_id: UUID, *, expires_s: float) -> None:
        """Note that the object of a document is about to be made; ``add_document`` ends that."""
        with self._transaction() as session:
            uploads.begin(session, document_id, expires_s=expires_s)

    def add_document(
        self,
        document: Document,
        *,
        dispatch_after_s: float,
        end_upload: EndUpload | None = uploads.end,
        password: str | None = None,
    ) -> None:
        """Insert a queued document, end its upload, and count it to its key.

        Without ``end_upload`` there is no upload to end. A password is kept until the document
        leaves the split.

        Raises:
            ValueError: it is another tenant's.
            UploadExpiredError: its object may have been removed; the row does not stand.
            BatchClosedError: the batch was cancelled meanwhile; the row does not stand.
            QuotaUsedUpError: the key may send no more; the row does not stand.
            DuplicateRowError: its Idempotency-Key was used before.
            OutcomeUnknownError: the row may stand or not.
            DatabaseUnavailableError: there is no connection; the row does not stand.
        """
        if document.tenant != self.tenant:
            raise ValueError("a ledger adds documents of its own tenant only")
        with self._transaction() as session:
            batch_id = document.batch_id
            if batch_id is not None and not batches.takes_documents(session, batch_id):
                raise BatchClosedError
            if end_upload is not None and not end_upload(session, document.id):
                raise UploadExpiredError
            documents.insert(session, document, dispatch_after_s=dispatch_after_s)
            if password is not None:
                document_sources.keep_password(session, document.id, password)
            use_before = admission.charge(session, document)
            if use_before.is_used_up:
                raise QuotaUsedUpError(use_before)

    def cancel_document(self, document_id: UUID) -> DocumentState:
        """End an open document; return the state that it was in."""
        with self._transaction() as session:
            return cancelling.cancel(session, document_id, tenant=self.tenant)

    def retry_document(self, document_id: UUID) -> Retry:
        """Start over what a document has not read; say whether that was possible."""
        with self._transaction() as session:
            return retrying.retry(session, document_id, tenant=self.tenant)

    def delete_document(self, document_id: UUID, *, writers_s: float) -> None:
        """Hide a document for good; its objects and rows are removed by the sweep."""
        with self._transaction() as session:
            deleting.mark(session, document_id, tenant=self.tenant, writers_s=writers_s)

    def events(self, document_id: UUID, after: int, limit: int) -> tuple[Document, Sequence[Event]]:
        """Return a document, and up to ``limit`` of its events that follow a number, in order."""
        with self._transaction() as session:
            document = documents.get(session, document_id, tenant=self.tenant)
            # Asked later than the document: where that is final, its end is among these.
            return document, events.list_after(session, document, after, limit=limit)

    def export(
        self,
        document_id: UUID,
        *,
        generation: int,
        name: str,
        pages: str,
        dispatch_after_s: float,
    ) -> Requested | exports.Refusal:
        """Ask for another form of a result; see ``db.exports.request``."""
        with self._transaction() as session:
            document = documents.get(session, document_id, tenant=self.tenant)
            return exports.request(
                session,
                document,
                generation=generation,
                name=name,
                pages=pages,
                dispatch_after_s=dispatch_after_s,
            )

    def leave_export_to_sweep(self, export_id: UUID) -> None:
        """Let the sweep send an export that nobody was told of."""
        with self._transaction() as session:
            exports.make_due(session, export_id)

    def pages(self, document_id: UUID, *, after_index: int, limit: int) -> Sequence[Page]:
        """Return up to ``limit`` pages in order, from the one after ``after_index``."""
        with self._transaction() as session:
            documents.get(session, document_id, tenant=self.tenant)
            return pages.list_page(session, document_id, after_index=after_index, limit=limit)

    def page(self, document_id: UUID, page_index: int) -> Page:
        """Return one page, by its 0-based position.

        Raises:
            RowNotFoundError: the document has none there, or is not split yet.
        """
        found = self.pages(document_id, after_index=page_index - 1, limit=1)
        if not found or found[0].page_index != page_index:
            raise RowNotFoundError(f"no page {page_index} of document {document_id}")
        return found[0]

    def batch(self, batch_id: UUID) -> tuple[Batch, BatchCounts]:
        with self._transaction() as session:
            batch = batches.get(session, batch_id, tenant=self.tenant)
            return batch, batches.count(session, batch_id)

    def cancel_batch(self, batch_id: UUID) -> None:
        """Let a batch take no more documents, and end those that are open.

        The first of them here, and what is left of a large batch by the sweep, which also goes on
        where this dies half-way.
        """
        with self._transaction() as session:
            cancelling.start_batch(session, batch_id, tenant=self.tenant)
        with self._transaction() as session:
            after = cancelling.cancel_some(session, batch_id, after=None, limit=_CANCELLED_AT_ONCE)
        if after is None:
            with self._transaction() as session:
                cancelling.finish_batch(session, batch_id)

    def batches(self, *, limit: int, before: UUID | None) -> Sequence[tuple[Batch, BatchCounts]]:
        """Return batches newest first, those older than ``before`` only."""
        with self._transaction() as session:
            found = batches.list_page(session, tenant=self.tenant, limit=limit, before=before)
            counts = batches.count_each(session, [batch.id for batch in found])
        return [(batch, counts[batch.id]) for batch in found]

    def report(
        self, batch_id: UUID, *, after: UUID | None, limit: int
    ) -> Sequence[ReportedDocument]:
        """Return documents of a batch, oldest first, from the one after ``after``."""
        with self._transaction() as session:
            batches.get(session, batch_id, tenant=self.tenant)
            return batch_report.read_page(session, batch_id, after=after, limit=limit)

    def retry_batch(self, batch_id: UUID, *, cancelled_too: bool) -> Retry:
        """Start over what was not found or read of a batch; say whether that was possible.

        The first documents here, and the rest of a large batch by the sweep, which also goes on
        where this dies half-way.
        """
        # Apart: uploads to the batch wait for the first, and the second looks through documents.
        with self._transaction() as session:
            is_listed_again = listings.start_over(session, batch_id, tenant=self.tenant)
        with self._transaction() as session:
            outcome = batch_retrying.request(
                session, batch_id, tenant=self.tenant, cancelled_too=cancelled_too
            )
        if outcome is Retry.STARTED:
            with self._transaction() as session:
                batch_retrying.retry_some(session, batch_id, limit=_RETRIED_AT_ONCE)
        return Retry.STARTED if is_listed_again else outcome

    def batch_of_key(self, idempotency_key: str) -> Batch | None:
        """Return the batch that was created under this Idempotency-Key, if any."""
        with self._transaction() as session:
            return batches.find_by_idempotency_key(session, tenant=self.tenant, key=idempotency_key)

    def add_batch(self, batch: Batch, source: dict[str, Any] | None = None) -> None:
        """Insert a batch, and with it what it is to be filled from, if that is known.

        Raises:
            ValueError: it is another tenant's.
            DuplicateRowError: its Idempotency-Key was used before.
            TooManyListingsError: as many as may are being filled.
        """
        if batch.tenant != self.tenant:
            raise ValueError("a ledger adds batches of its own tenant only")
        with self._transaction() as session:
            batches.insert(session, batch)
            if source is not None:
                # The batch's id, by which ``listings.is_first_source`` finds it.
                listings.add(session, self._listing(batch.id, source, listing_id=batch.id))

    def add_source(self, batch_id: UUID, source: dict[str, Any]) -> None:
        """Let a batch be filled from something more.

        Raises:
            BatchClosedError: it takes no more documents.
            TooManyListingsError: as many as may are being filled.
        """
        with self._transaction() as session:
            batches.get(session, batch_id, tenant=self.tenant)
            if not listings.add(session, self._listing(batch_id, source, listing_id=new_id())):
                raise BatchClosedError

    def options_of_batch(self, batch_id: UUID) -> dict[str, Any]:
        """Return the options of a batch, and count nothing."""
        with self._transaction() as session:
            return batches.get(session, batch_id, tenant=self.tenant).options

    def is_first_source(self, batch_id: UUID, source: Mapping[str, Any] | None) -> bool:
        """Say whether a batch was created to be filled from this; None: from nothing."""
        with self._transaction() as session:
            batches.get(session, batch_id, tenant=self.tenant)
            return listings.is_first_source(session, batch_id, source)

    def _listing(self, batch_id: UUID, source: dict[str, Any], *, listing_id: UUID) -> BatchListing:
        return BatchListing(
            id=listing_id,
            batch_id=batch_id,
            tenant=self.tenant,
            key_id=self.key_id,
            source=source,
        )


def _counted(found: Sequence[Document]) -> Sequence[UUID]:
    return [document.id for document in found if document.state in _COUNTED_STATES]


def services_of(request: Request) -> Services:
    """Return what the process was started with."""
    services: Services = request.app.state.services
    return services


def ledger_of_request(request: Request, tenant: Tenant, key_id: KeyId) -> TenantLedger:
    """Return the ledger of whoever asks."""
    return TenantLedger(services_of(request).transaction, tenant, key_id=key_id)


Ledger = Annotated[TenantLedger, Depends(ledger_of_request)]
ServicesOfProcess = Annotated[Services, Depends(services_of)]
