"""``pagefleet s3-events``: new objects become documents, as a queue tells of them."""

from typing import TYPE_CHECKING

import structlog

from cli.errors import EXIT_USAGE, CommandError

if TYPE_CHECKING:
    from api.settings import ApiSettings

log = structlog.get_logger(__name__)

HEARTBEAT_NAME = "s3-events"
# A request that waits for messages ends sooner; a server that is connected and silent does not.
_END_LIMIT_S = 25


def s3_events() -> None:
    """Make documents of new objects in watched places, as an SQS queue tells of them.

    Runs until it is stopped. A message is deleted once its documents stand; while the system is
    full, or a server is away, messages are left in the queue. Several may run at a time.
    """
    from api import intake_metrics
    from api.consume_events import consume_until
    from api.event_intake import handling_limit_s, make_queue, opened_intake
    from cli.stop_signals import stop_on_signals
    from workers import program_metrics
    from workers.heartbeat import Heartbeat, default_file
    from workers.observability import configure_logging

    settings = load_event_settings()
    if settings.s3_events_queue_url is None:
        raise CommandError(
            "PAGEFLEET_S3_EVENTS_QUEUE_URL is not set",
            "Name the queue that the bucket notifies; docs/s3-events.md shows how to make it.",
            exit_code=EXIT_USAGE,
        )
    configure_logging(settings.log_level)
    file = settings.heartbeat_file or default_file(settings.home, HEARTBEAT_NAME)
    heartbeat = Heartbeat(file, name=HEARTBEAT_NAME)
    program_metrics.note_build(HEARTBEAT_NAME)
    program_metrics.serve(
        program_metrics.registry_of(intake_metrics.GROUP),
        host=settings.metrics_host,
        port=settings.metrics_port,
    )
    queue = make_queue(settings, settings.s3_events_queue_url)
    with (
        opened_intake(settings) as (intake, _, _),
        stop_on_signals(force_after_s=_END_LIMIT_S) as stop,
    ):
        log.info("s3-events starts", places=len(settings.s3_events_watched))
        consume_until(
            stop,
            queue=queue,
            take_in=intake.take_in,
            require_ready=intake.require_ready,
            handling_limit_s=handling_limit_s(settings),
            after_round=heartbeat.beat,
        )
    queue.close()
    heartbeat.remove()


def load_event_settings() -> "ApiSettings":
    """Read the settings of the programs that take events in.

    Raises:
        CommandError: one is wrong, or no place is watched.
    """
    from api.settings import read_api_settings
    from workers.settings import SettingsError

    try:
        settings = read_api_settings()
    except SettingsError as error:
        raise CommandError(
            f"the settings are wrong:\n{error}",
            "docs/s3-events.md says which are needed.",
            exit_code=EXIT_USAGE,
        ) from error
    if not settings.s3_events_watched:
        raise CommandError(
            "PAGEFLEET_S3_EVENTS_WATCHED names no place",
            "Say whose documents the objects of which bucket become; see docs/s3-events.md.",
            exit_code=EXIT_USAGE,
        )
    return settings
