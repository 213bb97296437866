"""How often a key may ask: counted in Redis for all processes, and not at all where that is away.

What protects the system is Postgres: quotas in pages and admission hold without Redis. A rate only
keeps one key from taking the others' turns, so an outage of Redis costs that, and no request.
"""

import math
from collections.abc import Callable, Mapping
from threading import Lock

import structlog

from api.errors import ApiError
from db.api_keys import Grant
from workers.dispatch import DispatchError
from workers.request_rates import WINDOW_S, Taken

log = structlog.get_logger(__name__)

TakeRequest = Callable[[str, int], Taken]
"""Counts a request to a key that may make so many a minute; ``DispatchError``: nobody counts."""


class RequestRates:
    """Asks whether a key may make a request, and says when requests are no longer counted."""

    def __init__(self, take: TakeRequest) -> None:
        self._take = take
        self._lock = Lock()
        self._is_counting = True

    def require(self, grant: Grant) -> Mapping[str, str]:
        """Count a request, and return what its answer says of the key's rate, as headers.

        Nothing of keys without a rate, and where nobody counts.

        Raises:
            ApiError: the key has asked too often; says when it may ask again.
        """
        most = grant.max_requests_per_minute
        if most is None:
            return {}
        try:
            taken = self._take(grant.key_id, most)
        except DispatchError:
            self._note(is_counting=False)
            return {}
        self._note(is_counting=True)
        headers = headers_of(taken, most)
        if not taken.is_allowed:
            raise ApiError(
                "too_many_requests",
                detail=f"This key may make {most:,} requests a minute, and has made more. Wait as "
                "long as Retry-After says, or ask for a higher rate.",
                headers=headers | {"Retry-After": str(_seconds(taken.wait_s))},
            )
        return headers

    def _note(self, *, is_counting: bool) -> None:
        with self._lock:
            is_news = is_counting != self._is_counting
            self._is_counting = is_counting
        if not is_news:
            return
        if is_counting:
            log.info("requests of keys counted again")
        else:
            log.warning("requests of keys not counted, the broker is not reachable")


def headers_of(taken: Taken, max_requests_per_minute: int) -> dict[str, str]:
    """Return the headers of draft-ietf-httpapi-ratelimit-headers."""
    return {
        "RateLimit-Policy": f'"requests";q={max_requests_per_minute};w={WINDOW_S}',
        "RateLimit": f'"requests";r={taken.left};t={_seconds(taken.wait_s)}',
    }


def _seconds(exact_s: float) -> int:
    return max(1, math.ceil(exact_s))
