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
    options = {
        **celery_options(settings)["broker_transport_options"],
        # Not the workers' own: who held that when the broker cut him off keeps it for minutes.
        "unacked_mutex_key": "mutex-of-the-test",
    }
    with kombu.Connection(redis_url, transport_options=options) as connection:
        connection.default_channel.qos.restore_visible(num=100, interval=1)
