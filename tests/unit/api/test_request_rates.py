import pytest
from structlog.testing import capture_logs

from api.errors import ApiError
from api.request_rates import RequestRates
from db.api_keys import Grant
from workers.dispatch import DispatchError
from workers.request_rates import Taken

GRANT = Grant("0123", "archive", frozenset({"read"}), max_requests_per_minute=60)


class Redis:
    def __init__(self, taken: Taken | None = None) -> None:
        self.taken = taken or Taken(is_allowed=True, left=59, wait_s=1.0)
        self.is_away = False
        self.asked: list[tuple[str, int]] = []

    def take(self, key_id: str, max_requests_per_minute: int) -> Taken:
        self.asked.append((key_id, max_requests_per_minute))
        if self.is_away:
            raise DispatchError
        return self.taken


def test_an_answer_says_what_the_key_may_still_ask() -> None:
    redis = Redis(Taken(is_allowed=True, left=41, wait_s=18.2))

    headers = RequestRates(redis.take).require(GRANT)

    assert headers == {
        "RateLimit-Policy": '"requests";q=60;w=60',
        "RateLimit": '"requests";r=41;t=19',
    }
    assert redis.asked == [("0123", 60)]


def test_a_key_without_a_rate_is_not_counted() -> None:
    redis = Redis()

    assert RequestRates(redis.take).require(Grant("0123", "archive", frozenset())) == {}
    assert redis.asked == []


def test_a_key_that_asks_too_often_is_told_when_it_may_ask_again() -> None:
    redis = Redis(Taken(is_allowed=False, left=0, wait_s=0.2))

    with pytest.raises(ApiError) as raised:
        RequestRates(redis.take).require(GRANT)

    assert raised.value.code == "too_many_requests"
    assert raised.value.headers["Retry-After"] == "1"
    assert raised.value.headers["RateLimit"] == '"requests";r=0;t=1'
    assert "60 requests a minute" in str(raised.value.detail)


def test_requests_are_served_uncounted_while_redis_is_away() -> None:
    redis = Redis()
    rates = RequestRates(redis.take)
    redis.is_away = True

    answers = [rates.require(GRANT) for _ in range(5)]

    assert answers == [{}] * 5


def test_an_outage_is_logged_once_and_so_is_its_end() -> None:
    redis = Redis()
    rates = RequestRates(redis.take)

    with capture_logs() as lines:
        redis.is_away = True
        for _ in range(3):
            rates.require(GRANT)
        redis.is_away = False
        rates.require(GRANT)
        rates.require(GRANT)

    assert [(line["log_level"], line["event"]) for line in lines] == [
        ("warning", "requests of keys not counted, the broker is not reachable"),
        ("info", "requests of keys counted again"),
    ]
