"""``pagefleet worker``: a Celery worker with the options that this project needs."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import structlog
import typer

from cli.errors import EXIT_USAGE, CommandError

if TYPE_CHECKING:
    from workers.settings import WorkerSettings

log = structlog.get_logger(__name__)

# Splitting and assembling wait for storage and the database more than they compute.
_WAITING_SLOTS = 2

# SIGTERM then asks for a soft shutdown: running tasks get time, and what is left goes back to
# the queue at once instead of after the visibility timeout. Celery reads it at import.
_ENVIRONMENT = {"REMAP_SIGTERM": "SIGQUIT"}


def worker(
    *,
    queues: Annotated[
        str, typer.Option(help="Queues to work on, separated by commas.")
    ] = "recognize",
    slots: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Tasks at a time. Default: PAGEFLEET_SLOTS, else one per GPU, or per core without"
            " one, for 'recognize', and 2 for the others.",
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(help="Name in Flower, unique in the fleet; %h is the host's name."),
    ] = None,
) -> None:
    """Work on queued documents until stopped; SIGTERM lets running tasks end first."""
    from cli.settings import become, load_settings
    from workers.celeryconfig import RECOGNIZE_QUEUE
    from workers.devices import count_gpus
    from workers.heartbeat import started_file
    from workers.observability import configure_logging
    from workers.settings import WorkerSettings

    chosen = _known_queues(queues)
    settings = load_settings(WorkerSettings)
    configure_logging(settings.log_level)
    gpu_count = count_gpus()
    if RECOGNIZE_QUEUE in chosen:
        require_recognition(settings, gpu_count=gpu_count)
    slots = slots or default_slots(settings, chosen, gpu_count=gpu_count)
    check_cores(settings, chosen, slots)
    file = heartbeat_file(settings, name or "+".join(chosen))
    log.info("worker starts", queues=chosen, slots=slots)
    # What a worker that was killed has left would tell a probe that this one is ready.
    started_file(file).unlink(missing_ok=True)
    become(
        worker_command(
            chosen,
            slots=slots,
            name=name or f"{'+'.join(chosen)}@%h",
            log_level=settings.log_level,
        ),
        # Pool children read it to build what their queues need, and no more.
        environment={
            "PAGEFLEET_WORKER_QUEUES": ",".join(chosen),
            "PAGEFLEET_SLOTS": str(slots),
            "PAGEFLEET_HEARTBEAT_FILE": str(file),
            **metrics_environment(settings, file),
            **_ENVIRONMENT,
        },
    )


def heartbeat_file(settings: "WorkerSettings", name: str) -> Path:
    """Return where a worker says that it lives."""
    from workers.heartbeat import default_file

    return settings.heartbeat_file or default_file(settings.home, name.removesuffix("@%h"))


def metrics_environment(settings: "WorkerSettings", heartbeat: Path) -> dict[str, str]:
    """Return what lets the processes of a worker count together, where metrics are shown at all.

    The library reads it when it is imported, so it has to be there before a worker begins, and in
    no other program: Flower counts for itself.
    """
    if not settings.metrics_port:
        return {}
    from workers.metric_files import FOLDER_VARIABLE, folder_of, prepare

    folder = folder_of(heartbeat)
    prepare(folder)
    return {FOLDER_VARIABLE: str(folder)}


def require_recognition(settings: "WorkerSettings", *, gpu_count: int) -> None:
    """Look for the device and the models before Celery takes over.

    Its pool would start children for ever, and each would take a task and fail.

    Raises:
        CommandError: a required GPU or a model is missing or wrong.
    """
    from workers.devices import choose_device
    from workers.ocr.errors import OcrError
    from workers.ocr.profiles import open_profile

    try:
        choose_device(settings.device, slot=0, gpu_count=gpu_count)
        open_profile(settings.profile, settings.models_dir)
    except OcrError as error:
        raise CommandError(
            str(error), "`pagefleet doctor` looks for the cause.", exit_code=EXIT_USAGE
        ) from error


def worker_command(queues: list[str], *, slots: int, name: str, log_level: str) -> list[str]:
    """Return the command line of a Celery worker."""
    return [
        # Quiet: its banner is for a terminal, and no line of the log.
        *(sys.executable, "-m", "celery", "--quiet", "-A", "workers.app", "worker"),
        *("-Q", ",".join(queues)),
        *("--concurrency", str(slots)),
        *("-n", name),
        *("--loglevel", log_level.upper()),
        "-E",  # events are what Flower shows
        # A fleet of n workers would exchange n² messages, and nothing here uses them.
        "--without-gossip",
        "--without-mingle",
    ]


def default_slots(settings: "WorkerSettings", queues: list[str], *, gpu_count: int) -> int:
    """Return how many tasks a worker runs at a time when nobody chose."""
    from workers.celeryconfig import RECOGNIZE_QUEUE
    from workers.devices import count_cores

    if settings.slots:
        return settings.slots
    if RECOGNIZE_QUEUE not in queues:
        return _WAITING_SLOTS
    return (settings.device != "cpu" and gpu_count) or count_cores()


def check_cores(settings: "WorkerSettings", queues: list[str], slots: int) -> None:
    """Refuse slots that would take each other's cores: all of them would become slower.

    Raises:
        CommandError: more threads were set than there are cores.
    """
    from workers.celeryconfig import RECOGNIZE_QUEUE
    from workers.devices import count_cores

    cores = count_cores()
    if (
        RECOGNIZE_QUEUE in queues
        and settings.ocr_threads > 1
        and slots * settings.ocr_threads > cores
    ):
        raise CommandError(
            f"{slots} slots with PAGEFLEET_OCR_THREADS={settings.ocr_threads} are more than the"
            f" {cores} cores of this machine",
            "Leave PAGEFLEET_OCR_THREADS unset, so that each slot takes its share.",
            exit_code=EXIT_USAGE,
        )


def _known_queues(listed: str) -> list[str]:
    from workers.celeryconfig import QUEUES

    queues = [name.strip() for name in listed.split(",") if name.strip()]
    unknown = [name for name in queues if name not in QUEUES]
    if unknown or not queues:
        raise CommandError(
            f"no queue is called {', '.join(unknown) or repr(listed)}",
            f"The queues are: {', '.join(QUEUES)}.",
            exit_code=EXIT_USAGE,
        )
    return queues
