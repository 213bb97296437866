"""Delivers again what workers hold, as a process with too short a visibility timeout does."""

import kombu
from pydantic import SecretStr

from workers.celeryconfig import celery_options
from workers.settings import WorkerSettings


def deliver_again(redis_url: str) -> None:
    """Put all messages that are held for a second already back into their queues."""
    settings = WorkerSettings.model_construct(
        redis_url=SecretStr(redis_url), redis_visibility_timeout_s=1
    )
    options = celery_options(settings)
    with kombu.Connection(
        redis_url, transport_options=options["broker_transport_options"]
    ) as connection:
        connection.default_channel.qos.restore_visible(num=100, interval=1)
