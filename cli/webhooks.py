"""``pagefleet webhooks``: the program that tells endpoints how documents ended."""

HEARTBEAT_NAME = "webhooks"
_DAY_S = 86_400
_CONNECTIONS = 8
# A message has been sent by then, or its lease ends and it comes again.
_END_LIMIT_S = 20


def webhooks() -> None:
    """Send webhooks until stopped; it needs Postgres, and the way out to the Internet.

    Each message is tried for a day until its endpoint answers with 2xx; docs/api.md has the rules.

    Several may run at a time; each sends what no other is sending.
    """
    import structlog

    from cli.settings import WebhookSettings, load_settings
    from cli.stop_signals import stop_on_signals
    from db.engine import Database
    from workers import program_metrics, webhook_metrics
    from workers.deliver_webhook import DeliveryRules, deliver_until
    from workers.heartbeat import Heartbeat, default_file
    from workers.observability import configure_logging
    from workers.webhook_post import WebhookPoster

    settings = load_settings(WebhookSettings)
    configure_logging(settings.log_level)
    # Senders ask for moments; most of the time they wait for endpoints.
    database = Database(
        settings.database_url.get_secret_value(), pool_size=2, max_connections=_CONNECTIONS
    )
    file = settings.heartbeat_file or default_file(settings.home, HEARTBEAT_NAME)
    heartbeat = Heartbeat(file, name=HEARTBEAT_NAME)
    program_metrics.note_build(HEARTBEAT_NAME)
    program_metrics.serve(
        program_metrics.registry_of(webhook_metrics.GROUP),
        host=settings.metrics_host,
        port=settings.metrics_port,
    )
    with stop_on_signals(force_after_s=_END_LIMIT_S) as stop:
        structlog.get_logger(__name__).info("webhooks starts")
        deliver_until(
            stop,
            transaction=database.transaction,
            poster=WebhookPoster(
                timeout_s=settings.webhook_timeout_s,
                allow_loopback=settings.webhook_allow_loopback,
            ),
            rules=DeliveryRules(
                senders=settings.webhook_senders,
                timeout_s=settings.webhook_timeout_s,
                interval_s=settings.webhook_interval_s,
                disable_after_s=settings.webhook_disable_after_days * _DAY_S,
                keep_s=settings.webhook_keep_days * _DAY_S,
                allow_loopback=settings.webhook_allow_loopback,
            ),
            after_round=heartbeat.beat,
        )
    heartbeat.remove()
    database.dispose()
