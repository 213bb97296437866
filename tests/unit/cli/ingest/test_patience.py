"""What is waited for, and what is not."""

import threading
from collections.abc import Callable

import pytest

from cli.client import UNREACHABLE
from cli.errors import ApiError
from cli.ingest.patience import Patience, StoppedError, is_of_one_file


class Api:
    """Refuses some calls, and then answers."""

    def __init__(self, *refusals: ApiError) -> None:
        self.refusals = list(refusals)
        self.calls = 0

    def __call__(self) -> str:
        self.calls += 1
        if self.refusals:
            raise self.refusals.pop(0)
        return "answer"


def refusal(status: int | None, code: str = "busy", retry_after_s: float | None = 0) -> ApiError:
    return ApiError("Busy.", "", code=code, status=status, retry_after_s=retry_after_s)


def patience(*, max_wait_s: float = 60, report: Callable[[str], None] = lambda _: None) -> Patience:
    return Patience(threading.Event(), max_wait_s=max_wait_s, report=report)


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_call_is_made_again_when_the_api_says_so(status: int) -> None:
    api = Api(*(refusal(status) for _ in range(1 if status == 500 else 3)))

    assert patience().call(api) == "answer"


@pytest.mark.parametrize("status", [400, 401, 404, 409, 413, 415, 422])
def test_what_will_not_change_is_not_waited_for(status: int) -> None:
    api = Api(refusal(status))

    with pytest.raises(ApiError):
        patience().call(api)

    assert api.calls == 1


def test_a_pause_that_is_too_long_ends_the_call() -> None:
    api = Api(refusal(429, "quota_exceeded", retry_after_s=3_600))

    with pytest.raises(ApiError):
        patience(max_wait_s=60).call(api)


def test_a_pause_is_reported_once_and_kept_by_all() -> None:
    said: list[str] = []
    is_said, other_is_back = threading.Event(), threading.Event()

    def report(text: str) -> None:
        said.append(text)
        is_said.set()

    shared = patience(report=report)
    api = Api(refusal(503, retry_after_s=0.3))

    def ask_later() -> None:
        shared.call(Api())
        other_is_back.set()

    thread = threading.Thread(target=lambda: shared.call(api))
    thread.start()
    assert is_said.wait(10)
    later = threading.Thread(target=ask_later)
    later.start()

    assert not other_is_back.wait(0.05)
    thread.join()
    later.join()
    assert said == ["Busy. Goes on in 0.3 s."]


def test_an_api_that_is_away_for_a_moment_is_waited_for() -> None:
    assert patience().call(Api(refusal(None, UNREACHABLE, None))) == "answer"


def test_a_run_that_is_to_end_makes_no_call() -> None:
    stop = threading.Event()
    stop.set()
    api = Api()

    with pytest.raises(StoppedError):
        Patience(stop, max_wait_s=60, report=lambda _: None).call(api)

    assert api.calls == 0


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        (413, "file_too_large", True),
        (422, "invalid_request", True),
        (404, "unknown_batch", False),
        (401, "unauthenticated", False),
        (409, "batch_closed", False),
    ],
)
def test_what_is_wrong_with_one_file_does_not_end_the_run(
    status: int, code: str, *, expected: bool
) -> None:
    assert is_of_one_file(refusal(status, code)) is expected
