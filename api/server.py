"""The process that serves the API."""

import logging
import signal
import socket
import sys
from contextlib import suppress

import uvicorn

from api.app import create_app, end_waiting
from api.head_deadline import timely_protocol
from api.settings import ApiSettings, read_api_settings
from workers import dispatch
from workers.observability import configure_logging

_STARTUP_FAILURE = 3  # as uvicorn's own program says it
KEEP_ALIVE_S = 65  # longer than the 60 s of usual load balancers, which reuse connections


def serve(settings: ApiSettings) -> None:
    """Serve until a signal comes, then let requests finish for ``api_shutdown_s`` seconds.

    Raises:
        SystemExit: with 0, once that is done: whoever stops a program reads any other as a failure.
    """
    # uvicorn raises the signal again for whoever had it before; by default it would kill.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    configure_logging(settings.log_level)
    # It warns of every malformed form, which is the sender's concern, and quotes from it.
    logging.getLogger("python_multipart").setLevel(logging.ERROR)
    # An upload waits for it; a worker has more time.
    dispatch.answer_within(settings.api_broker_timeout_s)
    app = create_app(settings)
    configuration = uvicorn.Config(
        app,
        http=timely_protocol(settings.api_head_timeout_s),
        host=settings.api_host,
        port=settings.api_port,
        log_config=None,  # ours is in place
        access_log=False,  # api.request_log writes one line a request
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=settings.api_shutdown_s,
    )
    server = _Server(configuration)
    with suppress(KeyboardInterrupt):  # raised again by the server, once it has ended in order
        server.run()
    if not server.started:
        sys.exit(_STARTUP_FAILURE)


class _Server(uvicorn.Server):
    """Lets those go who wait for events when it is told to end: they would wait it out."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        end_waiting(self.config.app)
        await super().shutdown(sockets)


if __name__ == "__main__":
    serve(read_api_settings())
