"""``pagefleet reconcile``: the sweep that sends what is due."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import structlog
import typer

from cli.errors import EXIT_USAGE, CommandError
from cli.find_lost import find_lost

if TYPE_CHECKING:
    from workers.settings import WorkerSettings

log = structlog.get_logger(__name__)

HEARTBEAT_NAME = "reconcile"
# A round ends sooner; where a server is connected and silent, it does not, and may be broken off:
# what it had taken and not sent is due again.
_END_LIMIT_S = 20


def reconcile(
    *,
    prefix: Annotated[
        str | None,
        typer.Option(
            metavar="s3://BUCKET/PREFIX",
            help="Instead of all below: list what lies there, make documents of objects that no"
            " event told of, and end.",
        ),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", help="With --prefix: one JSON object a page of the listing, and at the end."
        ),
    ] = False,
) -> None:
    """Send work from the database to the workers, round after round, until stopped.

    Each round fills the queues up to PAGEFLEET_DISPATCH_QUEUE_LIMIT messages: interactive
    documents first, tenants and batches by turns, and again what stands still, as after the death
    of a worker. Without this program only interactive documents start, and nothing recovers.
    It also fills batches from buckets, and removes what deleted documents have in storage, and then
    their rows.

    Several may run at a time; each looks at rows that no other holds.
    """
    if prefix is not None:
        find_lost(prefix, as_json=as_json)
        return
    if as_json:
        raise CommandError(
            "--json goes with --prefix alone",
            "Without it the program runs until it is stopped, and its log is JSON.",
            exit_code=EXIT_USAGE,
        )

    import threading

    from api.intake_settings import IntakeSettings
    from cli.filling_thread import start_filling
    from cli.settings import load_settings
    from cli.stop_signals import stop_on_signals
    from workers import program_metrics, sweep_metrics
    from workers.clear_storage import clear_until
    from workers.devices import Device
    from workers.heartbeat import Heartbeat
    from workers.observability import configure_logging
    from workers.recover_stalled import sweep_until
    from workers.runtime import Runtime
    from workers.settings import FOREIGN_PREFIXES

    # Of what is the API's it reads a part, and the rest is not unknown.
    settings = load_settings(IntakeSettings, foreign_prefixes=FOREIGN_PREFIXES)
    configure_logging(settings.log_level)
    runtime = Runtime(settings, Device("cpu"))
    heartbeat = Heartbeat(heartbeat_file(settings), name=HEARTBEAT_NAME)
    program_metrics.note_build(HEARTBEAT_NAME)
    sweep_metrics.VISIBILITY_TIMEOUT.set(settings.redis_visibility_timeout_s)
    program_metrics.serve(
        program_metrics.registry_of(sweep_metrics.GROUP),
        host=settings.metrics_host,
        port=settings.metrics_port,
    )
    with stop_on_signals(force_after_s=_END_LIMIT_S) as stop:
        log.info("reconcile starts")
        # A call to a store that is away may hang for minutes: nobody waits for this one.
        threading.Thread(
            target=clear_until,
            args=[stop],
            kwargs={
                "transaction": runtime.database.transaction,
                "store": runtime.store,
                "rules": runtime.rules,
                "interval_s": settings.sweep_interval_s,
            },
            name="clear-storage",
            daemon=True,
        ).start()
        start_filling(stop, settings, runtime)
        sweep_until(
            stop,
            transaction=runtime.database.transaction,
            rules=runtime.rules,
            limit=settings.sweep_limit,
            busy_interval_s=settings.dispatch_interval_s,
            idle_interval_s=settings.sweep_interval_s,
            after_round=heartbeat.beat,
        )
    heartbeat.remove()


def heartbeat_file(settings: "WorkerSettings") -> Path:
    """Return where the sweep says that it lives."""
    from workers.heartbeat import default_file

    return settings.heartbeat_file or default_file(settings.home, HEARTBEAT_NAME)
