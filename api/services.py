"""What the operations work with, built once when the process starts."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import ParamSpec, TypeVar

import anyio.to_thread
from anyio import CapacityLimiter

from api import http_metrics, intake_metrics
from api.admission import Admission, count_load, limits_of
from api.answer_places import AnswerPlaces
from api.auth import Keyring
from api.background import Background
from api.broker_rest import BrokerRest
from api.capacity import capacity_of
from api.errors import ApiError
from api.event_watch import EventWatch, look_in
from api.fleet_metrics import FleetMetrics
from api.readiness import Readiness
from api.request_rates import RequestRates, TakeRequest
from api.settings import ApiSettings
from api.spared_dispatch import (
    PlaceForSplit,
    SendDrawing,
    SendExport,
    SendSplit,
    SparedDispatch,
    SplitMessages,
)
from db.engine import Database, Transaction
from storage.object_store import ObjectStore
from workers import dispatch, program_metrics, request_rates
from workers.object_storage import make_store

P = ParamSpec("P")
R = TypeVar("R")

Probe = Callable[[], None]

STORAGE_ATTEMPTS = 3  # a client waits; whoever has time to try longer is a worker
PROBE_TIMEOUT_S = 1.0
PROBE_CACHE_S = 2.0


@dataclass(frozen=True, slots=True)
class Doors:
    """The servers that the API talks to; ``probes`` ask each of them for an answer."""

    transaction: Transaction
    store: ObjectStore
    send_split: SendSplit
    place_for_split: PlaceForSplit
    send_drawing: SendDrawing
    send_export: SendExport
    probes: Mapping[str, Probe]
    take_request: TakeRequest


OpenDoors = Callable[[ApiSettings], AbstractContextManager[Doors]]


@contextmanager
def open_doors(settings: ApiSettings) -> Iterator[Doors]:
    """Connect to the real servers; each is first talked to when it is first needed."""
    capacity = capacity_of(settings)
    database = Database(
        settings.database_url.get_secret_value(),
        pool_size=settings.api_database_pool_size,
        max_connections=capacity.database_connections,
        answer_timeout_s=settings.api_database_timeout_s,
    )
    store = make_store(
        settings,
        attempts=STORAGE_ATTEMPTS,
        connections=capacity.storage_connections,
        public_endpoint_url=settings.api_direct_upload_storage_url,
    )
    rest = BrokerRest()
    messages = SparedDispatch(
        dispatch.send_split,
        partial(dispatch.place_for_split, limit=settings.dispatch_queue_limit),
        partial(dispatch.send_drawing, limit=settings.dispatch_queue_limit),
        partial(dispatch.send_export_if_place, limit=settings.dispatch_queue_limit),
        rest=rest,
    )
    try:
        yield Doors(
            transaction=database.transaction,
            store=store,
            send_split=messages.send_split,
            place_for_split=messages.place_for_split,
            send_drawing=messages.send_drawing,
            send_export=messages.send_export,
            probes={
                "database": database.check,
                "broker": dispatch.check,
                "storage": store.check,
            },
            take_request=rest.spared(request_rates.take),
        )
    finally:
        store.close()
        database.dispose()


class Services:
    """The doors, and what one process keeps beside them.

    Calls to storage have threads of their own, and so has what completes an upload: slow storage
    must not take those in which the database answers.
    """

    def __init__(self, settings: ApiSettings, doors: Doors) -> None:
        self.settings = settings
        self.transaction = doors.transaction
        self.store = doors.store
        self.send_export = doors.send_export
        self.messages = SplitMessages(doors.place_for_split, doors.send_split)
        self.send_drawing = doors.send_drawing
        self.keyring = Keyring(doors.transaction, cache_s=settings.api_key_cache_s)
        self.request_rates = RequestRates(doors.take_request)
        self.admission = Admission(
            partial(count_load, doors.transaction),
            limits_of(settings),
            cache_s=settings.api_capacity_cache_s,
        )
        program_metrics.note_build("api")
        self.metrics = program_metrics.registry_of([
            *http_metrics.GROUP,
            *intake_metrics.GROUP,
            FleetMetrics(doors.transaction),
        ])
        self.readiness = Readiness(doors.probes, timeout_s=PROBE_TIMEOUT_S, cache_s=PROBE_CACHE_S)
        self.watch = EventWatch(look_in(doors.transaction))
        self.background = Background()
        self.stream_places = AnswerPlaces(
            "too_many_streams",
            per_owner=settings.api_max_streams_per_key,
            total=settings.api_max_streams,
        )
        self._uploads: Counter[str] = Counter()  # by tenant; changed in the event loop only
        capacity = capacity_of(settings)
        self._accepting_threads = CapacityLimiter(capacity.accepting_threads)
        self._storage_threads = CapacityLimiter(capacity.storage_threads)
        self._counting_threads = CapacityLimiter(capacity.counting_threads)
        self._counting_places = AnswerPlaces(
            "too_many_dry_runs", per_owner=1, total=capacity.counting_threads
        )

    @contextmanager
    def upload_slot(self, tenant: str) -> Iterator[None]:
        """Take one of the places for uploads, whose buffers have to fit into memory.

        One tenant gets half of them at most, so that one with many slow uploads does not shut out
        the others.

        Raises:
            ApiError: all are taken, or all of the tenant's; waiting would only hide that from the
                client.
        """
        capacity = capacity_of(self.settings)
        if (
            self._uploads.total() >= self.settings.api_max_uploads
            or self._uploads[tenant] >= capacity.uploads_per_tenant
        ):
            raise ApiError("too_many_uploads")
        self._uploads[tenant] += 1
        try:
            yield
        finally:
            self._uploads[tenant] -= 1
            if not self._uploads[tenant]:
                del self._uploads[tenant]

    async def in_storage_thread(
        self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """Run a call that talks to storage; it is waited for even when the request is cancelled."""
        return await anyio.to_thread.run_sync(
            lambda: function(*args, **kwargs), limiter=self._storage_threads
        )

    async def in_counting_thread(self, tenant: str, count: Callable[[], R]) -> R:
        """Run what counts objects for seconds, for one request of a tenant at a time.

        Raises:
            ApiError: one of the tenant is under way, or as many as there are threads for.
        """
        with self._counting_places.place(tenant):
            return await anyio.to_thread.run_sync(count, limiter=self._counting_threads)

    async def in_accepting_thread(
        self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """Run what completes an upload, on storage and database; waited for just as well.

        Raises:
            ApiError: no thread came free in the time that a request has for its answer.
        """
        try:
            with anyio.fail_after(self.settings.api_answer_timeout_s):
                await self._accepting_threads.acquire_on_behalf_of(turn := object())
        except TimeoutError as error:
            raise ApiError("busy") from error
        try:
            return await anyio.to_thread.run_sync(
                lambda: function(*args, **kwargs), limiter=CapacityLimiter(1)
            )
        finally:
            self._accepting_threads.release_on_behalf_of(turn)


def limit_asking_threads(settings: ApiSettings) -> None:
    """Let no more operations run than there are database connections for; called in the loop.

    Operations that are plain functions run in these threads.
    """
    limiter = anyio.to_thread.current_default_thread_limiter()
    limiter.total_tokens = capacity_of(settings).asking_threads
