"""Buckets of requests in the real Redis."""

from concurrent.futures import ThreadPoolExecutor
from time import monotonic

import pytest
import redis
from celery import Celery

from tests.support.processes import wait_until
from workers.request_rates import Taken, take

BUCKET_OF_A = "pagefleet:requests.a"

pytestmark = pytest.mark.usefixtures("broker")


def bucket(redis_url: str) -> "redis.Redis[bytes]":
    return redis.Redis.from_url(redis_url)


def test_a_key_may_make_a_minutes_requests_at_once_and_no_more() -> None:
    taken = [take("a", 3) for _ in range(4)]

    assert [each.is_allowed for each in taken] == [True, True, True, False]
    assert [each.left for each in taken] == [2, 1, 0, 0]
    # 20 seconds for each: to be full again, and, once it is empty, for the next one.
    assert [each.wait_s for each in taken] == pytest.approx([20, 40, 60, 20], abs=5)


@pytest.mark.parametrize("most", [7, 11, 13, 60, 999])
def test_the_last_request_of_a_minute_is_not_lost_to_rounding(most: int) -> None:
    taken = [take("a", most) for _ in range(most)]

    assert all(each.is_allowed for each in taken)
    assert taken[0].left == most - 1


def test_a_request_that_is_refused_costs_nothing(redis_url: str) -> None:
    take("a", 1)
    with bucket(redis_url) as client:
        before = client.get(BUCKET_OF_A)

        refused = [take("a", 1) for _ in range(50)]

        assert not any(each.is_allowed for each in refused)
        assert before is not None
        assert client.get(BUCKET_OF_A) == before


def test_keys_do_not_share_a_bucket() -> None:
    take("a", 1)

    assert not take("a", 1).is_allowed
    assert take("b", 1).is_allowed


def test_a_bucket_is_gone_when_it_is_full(redis_url: str) -> None:
    take("a", 20)  # full again in three seconds

    with bucket(redis_url) as client:
        assert 0 < client.pttl(BUCKET_OF_A) <= 3_001


def test_a_clock_that_was_set_back_stops_nobody_for_longer_than_a_minute(redis_url: str) -> None:
    with bucket(redis_url) as client:
        client.set(BUCKET_OF_A, 4 * 10**15)  # in the year 2096

    assert take("a", 60).wait_s <= 60


def test_a_raised_rate_holds_at_once() -> None:
    for _ in range(5):
        take("a", 2)

    wait_until(lambda: take("a", 1_200).is_allowed, timeout_s=2)


def test_many_at_once_get_no_more_than_there_is(broker: Celery) -> None:
    del broker
    began = monotonic()
    with ThreadPoolExecutor(16) as threads:
        taken: list[Taken] = list(threads.map(lambda _: take("a", 30), range(120)))
    filled = (monotonic() - began) / 2

    assert 30 <= sum(each.is_allowed for each in taken) <= 30 + filled + 1
