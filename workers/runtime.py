"""The composition root of a worker process: built once per process, from the settings."""

import os
import socket
from functools import cached_property

import structlog

from db import content_cache
from db.engine import Database
from db.errors import DatabaseError
from storage.s3 import S3ObjectStore
from workers import devices
from workers.celeryconfig import RECOGNIZE_QUEUE
from workers.content_cache import ContentCache
from workers.copy_source import SourceCopier
from workers.devices import Device
from workers.engine_setup import chosen_bundle, make_engine, render_limits
from workers.object_storage import make_store
from workers.ocr.engine import OcrEngine
from workers.open_source import SourceOpener
from workers.page_cache import PageCache
from workers.page_renderer import PageRenderer
from workers.settings import OcrSettings, WorkerSettings, read_settings
from workers.source_file import SourceFile
from workers.work_metrics import EngineMetrics, note_model, note_ready
from workers.work_rules import WorkRules

log = structlog.get_logger(__name__)


class Runtime:
    """Everything that the use cases of this process need; each part is made when first asked."""

    def __init__(self, settings: WorkerSettings, device: Device) -> None:
        self.settings = settings
        self.device = device
        self._are_models_noted = False

    @cached_property
    def database(self) -> Database:
        return Database(self.settings.database_url.get_secret_value())

    @cached_property
    def store(self) -> S3ObjectStore:
        return make_store(self.settings)

    @cached_property
    def source_file(self) -> SourceFile:
        return SourceFile(self.store, folder=self.settings.home / "sources")

    @cached_property
    def source_opener(self) -> SourceOpener:
        return SourceOpener(
            store=self.store,
            transaction=self.database.transaction,
            source_file=self.source_file,
            copier=SourceCopier(self.store, max_bytes=self.settings.max_file_bytes),
            renderer=self.renderer,
        )

    @cached_property
    def content_cache(self) -> ContentCache | None:
        if not self.settings.document_cache:
            return None
        return ContentCache(
            self.store,
            transaction=self.database.transaction,
            bundle=chosen_bundle(self.settings),
        )

    @cached_property
    def page_cache(self) -> PageCache | None:
        if not self.settings.page_cache:
            return None
        return PageCache(self.store, transaction=self.database.transaction)

    @cached_property
    def renderer(self) -> PageRenderer:
        return PageRenderer(render_limits(self.settings))

    @cached_property
    def engine(self) -> OcrEngine:
        slots = self.settings.slots or self.device.gpu_count or devices.count_cores()
        return make_engine(
            self.settings, self.device, slots=slots, observer=EngineMetrics(self.device.kind)
        )

    @cached_property
    def rules(self) -> WorkRules:
        return work_rules(self.settings)

    def engine_for_reading(self) -> OcrEngine:
        """Return the engine, once the splits have been told what this slot reads with.

        Raises:
            DatabaseError: they could not be told, and will be the next time.
        """
        self.note_models()
        return self.engine

    def note_models(self) -> None:
        """Tell the splits what this slot reads with, once, before it reads anything.

        Raises:
            DatabaseError: it could not be told, and will be the next time.
        """
        if not self._are_models_noted:
            with self.database.transaction() as session:
                content_cache.note_models(session, self.engine.model_version)
            self._are_models_noted = True

    @property
    def chunk_pages(self) -> int:
        return self.settings.chunk_pages or default_chunk_pages(self.settings)


def work_rules(settings: WorkerSettings) -> WorkRules:
    """Return the numbers that all use cases share."""
    return WorkRules(
        worker=f"{socket.gethostname()}:{os.getpid()}",
        lease_s=settings.lease_s,
        max_attempts=settings.max_attempts,
        retry_delay_s=settings.retry_delay_s,
        dispatch_grace_s=settings.dispatch_grace_s,
        queue_limit=settings.dispatch_queue_limit,
        overtime_s=min(settings.inference_timeout_s, settings.task_hard_limit_s),
    )


def default_chunk_pages(settings: OcrSettings) -> int:
    """Return the pages of a chunk: about 10 to 60 s of work on the device that will do it."""
    has_gpu = settings.device != "cpu" and devices.count_gpus() > 0
    return devices.GPU_CHUNK_PAGES if has_gpu else devices.CPU_CHUNK_PAGES


_runtime: Runtime | None = None


def start_slot(slot: int) -> Runtime:
    """Make this pool child's runtime; its device is pinned before anything touches a GPU.

    A slot that recognizes loads and warms up its models here, before its first task.
    """
    global _runtime  # noqa: PLW0603 - one per process, made after the pool child has started
    settings = read_settings(WorkerSettings)
    recognizes = RECOGNIZE_QUEUE in settings.worker_queues
    device = Device("cpu")
    if recognizes:
        device = devices.choose_device(settings.device, slot=slot, gpu_count=devices.count_gpus())
        devices.pin(device)
    _runtime = Runtime(settings, device)
    _ = _runtime.source_file  # made now, because it removes what slots before this one left
    if recognizes:
        _runtime.engine.warm_up()
        try:
            _runtime.note_models()
        except DatabaseError:
            log.warning("models not noted, the first chunk does it")
        note_model(_runtime.engine.model_version, device.kind)
    note_ready(settings.worker_queues)
    log.info("slot ready", slot=slot, device=device.kind, gpu=device.gpu_index)
    return _runtime


def current_runtime() -> Runtime:
    """Return this process's runtime.

    Raises:
        RuntimeError: the process has none; its start should have ended it.
    """
    if _runtime is None:
        raise RuntimeError("this process was not started as a slot")
    return _runtime
