"""The way of an event into the system, put together from the settings."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from api.accept_document import page_limits_of
from api.admission import Admission, count_load, limits_of
from api.intake_metrics import count_event
from api.s3_event_settings import HANDLINGS_PER_VISIBILITY, S3EventSettings
from api.s3_events.event import ObjectEvent
from api.settings import ApiSettings
from api.take_in_object import IntakeRules, Outcome, require_room_for_all, take_in_object
from db.engine import Database, Transaction
from storage.errors import SourceRefusedError
from storage.object_store import ObjectStore
from storage.sqs import SqsQueue
from workers.object_storage import make_store

STORAGE_ATTEMPTS = 3  # what is not handled now comes again


class EventIntake:
    """Takes in events, on the servers of one process."""

    def __init__(
        self,
        settings: ApiSettings,
        *,
        transaction: Transaction,
        store: ObjectStore,
        admission: Admission,
    ) -> None:
        self._transaction = transaction
        self._store = store
        self._admission = admission
        self._rules = IntakeRules(
            watched=settings.s3_events_watched,
            own_bucket=settings.s3_bucket,
            page_limits=page_limits_of(settings),
        )

    def take_in(self, event: ObjectEvent) -> Outcome:
        """Handle one event, and count what became of it; see ``take_in_object``."""
        try:
            outcome = take_in_object(
                event,
                transaction=self._transaction,
                store=self._store,
                admission=self._admission,
                rules=self._rules,
            )
        except Exception as error:
            is_refused = isinstance(error, SourceRefusedError)
            count_event(Outcome.REFUSED if is_refused else "put_off")
            raise
        count_event(outcome)
        return outcome

    def require_ready(self) -> None:
        """Ask whether an event could be handled now.

        Raises:
            ApiError: the system is full.
            DatabaseError: the database is away.
            StorageError: the storage is.
        """
        # The count of what is open may be one from before the database went away.
        with self._transaction() as session:
            session.connection()
        require_room_for_all(self._admission, self._rules)
        self._store.check()


@contextmanager
def opened_intake(settings: ApiSettings) -> Iterator[tuple[EventIntake, Database, ObjectStore]]:
    """Lend an intake on servers of its own, for programs beside the API."""
    database = Database(settings.database_url.get_secret_value())
    store = make_store(settings, attempts=STORAGE_ATTEMPTS)
    admission = Admission(
        partial(count_load, database.transaction),
        limits_of(settings),
        cache_s=settings.api_capacity_cache_s,
    )
    try:
        yield (
            EventIntake(
                settings, transaction=database.transaction, store=store, admission=admission
            ),
            database,
            store,
        )
    finally:
        store.close()
        database.dispose()


def handling_limit_s(settings: S3EventSettings) -> float:
    """Return the time that the messages of one request have together."""
    return settings.s3_events_visibility_s / HANDLINGS_PER_VISIBILITY


def make_queue(settings: S3EventSettings, url: str) -> SqsQueue:
    """Return the queue that the settings name; it is first talked to when it is first needed."""
    secret = settings.s3_secret_access_key
    return SqsQueue(
        url=url,
        endpoint_url=settings.s3_events_queue_endpoint_url,
        region=settings.s3_region,
        access_key_id=settings.s3_access_key_id,
        secret_access_key=None if secret is None else secret.get_secret_value(),
        visibility_s=settings.s3_events_visibility_s,
        wait_s=settings.s3_events_wait_s,
    )
