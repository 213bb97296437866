import threading
from typing import Any

import anyio
import anyio.to_thread
import pytest
from starlette.types import Message, Receive, Scope, Send

from api.answer_deadline import AnswerDeadline, lift
from api.errors import ApiError

STREAMED = ("POST", "/v1/documents")
ANSWER: list[Message] = [
    {"type": "http.response.start", "status": 200, "headers": []},
    {"type": "http.response.body", "body": b""},
]


async def nothing_comes() -> Message:
    await anyio.sleep_forever()
    raise AssertionError


async def body_comes() -> Message:
    await anyio.sleep(0.1)
    return {"type": "http.request", "body": b"", "more_body": False}


def ask(app: Any, receive: Receive = body_comes, *, path: str = "/v1/batches") -> list[str]:
    """Return the kinds of messages that were sent."""
    sent: list[str] = []

    async def send(message: Message) -> None:
        sent.append(message["type"])

    async def run() -> None:
        deadline = AnswerDeadline(app, timeout_s=0.05, streamed=frozenset({STREAMED}))
        with anyio.fail_after(10):
            await deadline({"type": "http", "method": "POST", "path": path}, receive, send)

    anyio.run(run)
    return sent


async def never_answers(_scope: Scope, _receive: Receive, _send: Send) -> None:
    await anyio.sleep_forever()


async def reads_first(_scope: Scope, receive: Receive, send: Send) -> None:
    await receive()
    for message in ANSWER:
        await send(message)


async def answers_slowly(_scope: Scope, _receive: Receive, send: Send) -> None:
    for message in ANSWER:
        await send(message)
        await anyio.sleep(0.1)


async def works_in_a_thread(_scope: Scope, _receive: Receive, send: Send) -> None:
    await anyio.to_thread.run_sync(lambda: threading.Event().wait(0.2))
    await send(ANSWER[0])


@pytest.mark.parametrize("app", [never_answers, works_in_a_thread])
def test_what_is_not_answered_in_time_is_refused(app: Any) -> None:
    with pytest.raises(ApiError, match="busy"):
        ask(app)


def test_a_body_that_does_not_come_is_the_clients_lateness() -> None:
    with pytest.raises(ApiError, match="request_timeout"):
        ask(reads_first, nothing_comes)


def test_a_streamed_body_may_take_longer() -> None:
    assert ask(reads_first, path=STREAMED[1]) == [each["type"] for each in ANSWER]


def test_a_streamed_operation_has_to_begin_in_time() -> None:
    with pytest.raises(ApiError, match="busy"):
        ask(never_answers, path=STREAMED[1])


def test_an_answer_that_has_begun_may_take_longer() -> None:
    assert ask(answers_slowly) == [each["type"] for each in ANSWER]


def test_an_operation_may_be_asked_to_take_longer() -> None:
    async def waits(scope: Scope, _receive: Receive, send: Send) -> None:
        lift(scope)
        await anyio.sleep(0.2)
        for message in ANSWER:
            await send(message)

    assert ask(waits) == [each["type"] for each in ANSWER]


def test_a_time_out_of_the_operation_itself_goes_on() -> None:
    async def times_out(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise TimeoutError("its own")

    with pytest.raises(TimeoutError, match="its own"):
        ask(times_out)
