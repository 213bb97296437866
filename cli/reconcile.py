"""``pagefleet reconcile``: the sweep that sends what is due."""


def reconcile() -> None:
    """Send work from the database to the workers, round after round, until stopped.

    Each round fills the queues up to PAGEFLEET_DISPATCH_QUEUE_LIMIT messages: interactive
    documents first, tenants and batches by turns, and again what stands still, as after the death
    of a worker. Without this program only interactive documents start, and nothing recovers.
    It also removes what deleted documents have in storage, and then their rows.

    Several may run at a time; each looks at rows that no other holds.
    """
    import threading

    from cli.settings import load_settings
    from cli.stop_signals import stop_on_signals
    from workers.clear_storage import clear_until
    from workers.devices import Device
    from workers.observability import configure_logging
    from workers.recover_stalled import sweep_until
    from workers.runtime import Runtime
    from workers.settings import WorkerSettings

    settings = load_settings(WorkerSettings)
    configure_logging(settings.log_level)
    runtime = Runtime(settings, Device("cpu"))
    with stop_on_signals() as stop:
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
        sweep_until(
            stop,
            transaction=runtime.database.transaction,
            rules=runtime.rules,
            limit=settings.sweep_limit,
            busy_interval_s=settings.dispatch_interval_s,
            idle_interval_s=settings.sweep_interval_s,
        )
