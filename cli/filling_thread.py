"""The thread of ``pagefleet reconcile`` that fills batches from buckets."""

import threading
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from api.intake_settings import IntakeSettings
    from workers.runtime import Runtime


def start_filling(stop: threading.Event, settings: "IntakeSettings", runtime: "Runtime") -> None:
    """Go on with listings until ``stop`` is set; apart from the sweep, as a store may be slow.

    Nobody waits for its end: whoever follows goes on behind the last page that was entered.
    """
    from api.accept_document import page_limits_of
    from api.admission import Admission, count_load, limits_of
    from api.fill_batches import ListingRules, fill_until
    from workers.lease import RENEWALS_PER_LEASE

    transaction = runtime.database.transaction
    threading.Thread(
        target=fill_until,
        args=[stop],
        kwargs={
            "transaction": transaction,
            "store": runtime.store,
            "admission": Admission(
                partial(count_load, transaction),
                limits_of(settings),
                cache_s=settings.api_capacity_cache_s,
            ),
            "rules": ListingRules(
                allowed=settings.api_sources,
                page_limits=page_limits_of(settings),
                max_manifest_bytes=settings.api_max_manifest_bytes,
                lease_s=settings.lease_s,
                renew_every_s=settings.lease_s / RENEWALS_PER_LEASE,
                retry_delay_s=settings.retry_delay_s,
                max_failures=settings.max_attempts,
            ),
            "interval_s": settings.sweep_interval_s,
        },
        name="fill-batches",
        daemon=True,
    ).start()
