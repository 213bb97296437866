"""``pagefleet reconcile``: the sweep that sends again what stands still."""

import signal
import threading


def reconcile() -> None:
    """Look for work that stands still and send it again, until stopped.

    Several may run at a time; each looks at rows that no other holds.
    """
    from cli.settings import load_settings
    from workers.devices import Device
    from workers.observability import configure_logging
    from workers.recover_stalled import sweep_until
    from workers.runtime import Runtime
    from workers.settings import WorkerSettings

    settings = load_settings(WorkerSettings)
    configure_logging(settings.log_level)
    runtime = Runtime(settings, Device("cpu"))
    sweep_until(
        stop_on_signal(),
        transaction=runtime.database.transaction,
        rules=runtime.rules,
        limit=settings.sweep_limit,
        interval_s=settings.sweep_interval_s,
    )


def stop_on_signal() -> threading.Event:
    """Return an event that SIGTERM and Ctrl-C set, so that a loop ends between two rounds."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    return stop
