"""How many requests a key may still make: a bucket a key in Redis, for all processes of the API.

A bucket holds a minute's requests and fills up evenly, so that who has been quiet may ask for a
minute's worth at once. What is kept is one number, the time at which the bucket is full (the
"generic cell rate algorithm"); it is read and written in one step, by the clock of the server.
"""

from dataclasses import dataclass

from workers import broker

WINDOW_S = 60
_MICROSECONDS = 1_000_000

# KEYS: the bucket. ARGV: requests a minute, microseconds of a minute.
# Gives whether this one is allowed (0 or 1), how many are left, and microseconds: until the bucket
# is full again, or, for one that is refused, until there is one more.
_TAKE = """
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local window = tonumber(ARGV[2])
local each = window / ARGV[1]
local full_at = tonumber(redis.call('GET', KEYS[1])) or now
-- Bounded, since a clock may be set back.
full_at = math.min(math.max(full_at, now), now + window) + each
local over = full_at - now - window
-- Rounding is no reason to refuse the last one.
if over > 0.5 then
  return {0, 0, math.ceil(over)}
end
local until_full = full_at - now
redis.call('SET', KEYS[1], string.format('%.3f', full_at), 'PX', math.ceil(until_full / 1000))
return {1, math.floor((window - until_full + 0.5) / each), math.ceil(until_full)}
"""


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of one request.

    Attributes:
        is_allowed: whether the key may make it.
        left: how many more it may make at once.
        wait_s: until it may make as many as ever again; for a refused one: until it may make one.
    """

    is_allowed: bool
    left: int
    wait_s: float


def take(key_id: str, max_requests_per_minute: int) -> Taken:
    """Count a request to a key, unless it has used up what it may; refused ones cost nothing.

    Raises:
        DispatchError: Redis does not answer, or refuses.
    """
    # The transport's client puts its prefix before the keys of simple commands only.
    bucket = broker.key(f"requests.{key_id}")
    with broker.redis_client() as client:
        is_allowed, left, wait_us = client.eval(
            _TAKE, 1, bucket, max_requests_per_minute, WINDOW_S * _MICROSECONDS
        )
    return Taken(bool(is_allowed), int(left), wait_us / _MICROSECONDS)
