"""How often a key may ask: counted in Redis for all processes, and not at all where that is away.

What protects the system is Postgres: quotas in pages and admission hold without Redis. A rate only
keeps one key from taking the others' turns, so an outage of Redis costs that, and no request.
"""

import math
import time
from collections.abc import Callable, Mapping
from threading import Lock

import structlog

from api.errors import ApiError
from db.api_keys import Grant
from workers.dispatch import DispatchError
from workers.request_rates import Taken

REST_S = 5.0
WINDOW_S = 60

log = structlog.get_logger(__name__)

TakeRequest = Callable[[str, int], Taken]
"""Counts a request to a key that may make so many a minute; ``DispatchError``: nobody counts."""


class RequestRates:
    """Asks whether a key may make a request, but after a failure not for ``rest_s`` seconds.

    Then one request asks again, and the others do not wait for its answer.
    """

    def __init__(
        self,
        take: TakeRequest,
        *,
        rest_s: float = REST_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._take = take
        self._rest_s = rest_s
        self._clock = clock
        self._lock = Lock()
        self._is_away = False
        self._asks_again_at = -math.inf

    def require(self, grant: Grant) -> Mapping[str, str]:
        """Count a request, and return what its answer says of the key's rate, as headers.

        Nothing of keys without a rate, and where nobody counts.

        Raises:
            ApiError: the key has asked too often; says when it may ask again.
        """
        most = grant.max_requests_per_minute
        if most is None or not self._is_to_ask():
            return {}
        try:
            taken = self._take(grant.key_id, most)
        except DispatchError:
            self._note_away()
            return {}
        self._note_back()
        headers = headers_of(taken, most)
        if not taken.is_allowed:
            raise ApiError(
                "too_many_requests",
                detail=f"This key may make {most:,} requests a minute, and has made more. Wait as "
                "long as Retry-After says, or ask for a higher rate.",
                headers=headers | {"Retry-After": str(_seconds(taken.wait_s))},
            )
        return headers

    def _is_to_ask(self) -> bool:
        with self._lock:
            now = self._clock()
            if self._is_away and now < self._asks_again_at:
                return False
            if self._is_away:
                self._asks_again_at = now + self._rest_s
            return True

    def _note_away(self) -> None:
        with self._lock:
            is_news = not self._is_away
            self._is_away = True
            self._asks_again_at = self._clock() + self._rest_s
        if is_news:
            log.warning("requests of keys not counted, the broker is not reachable")

    def _note_back(self) -> None:
        with self._lock:
            is_news = self._is_away
            self._is_away = False
        if is_news:
            log.info("requests of keys counted again")


def headers_of(taken: Taken, max_requests_per_minute: int) -> dict[str, str]:
    """Return the headers of draft-ietf-httpapi-ratelimit-headers."""
    return {
        "RateLimit-Policy": f'"requests";q={max_requests_per_minute};w={WINDOW_S}',
        "RateLimit": f'"requests";r={taken.left};t={_seconds(taken.wait_s)}',
    }


def _seconds(exact_s: float) -> int:
    return max(1, math.ceil(exact_s))
