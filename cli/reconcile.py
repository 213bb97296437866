"""``pagefleet reconcile``: the sweep that sends again what stands still."""


def reconcile() -> None:
    """Look for work that stands still and send it again, until stopped.

    Several may run at a time; each looks at rows that no other holds.
    """
    from cli.settings import load_settings
    from cli.stop_signals import stop_on_signals
    from workers.devices import Device
    from workers.observability import configure_logging
    from workers.recover_stalled import sweep_until
    from workers.runtime import Runtime
    from workers.settings import WorkerSettings

    settings = load_settings(WorkerSettings)
    configure_logging(settings.log_level)
    runtime = Runtime(settings, Device("cpu"))
    with stop_on_signals() as stop:
        sweep_until(
            stop,
            transaction=runtime.database.transaction,
            rules=runtime.rules,
            limit=settings.sweep_limit,
            interval_s=settings.sweep_interval_s,
        )
