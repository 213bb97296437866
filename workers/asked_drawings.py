"""Which page images have been asked for and are not drawn yet: each once, and few at a time.

No row says that an image is wanted and no quota counts it, so this bounds what it may cost: of
what a queue holds an eighth, and half of that for one tenant. Whoever draws an image takes it off
the list; what a worker that died has left there ends by itself.
"""

from contextlib import suppress
from enum import IntEnum

from workers import broker
from workers.broker import DispatchError

# Longer than the longest image takes that is drawn at all, and as long as one is not asked for
# again whose worker died.
ASKED_S = 120
_KEY = "drawings.asked"
_SHARE_OF_QUEUE = 8

# The first write is one that a server without memory refuses: it would let pass what comes later.
# KEYS: a hash of what was asked for. ARGV: the name of an image, its tenant, most images, most of
# one tenant, seconds until it ends. A value is the time of its end, a space and its tenant.
_ASK = """
local now = tonumber(redis.call('TIME')[1])
local all, own, ended = 0, 0, {}
local entries = redis.call('HGETALL', KEYS[1])
for index = 1, #entries, 2 do
  local ends, tenant = string.match(entries[index + 1], '^(%d+) (.*)$')
  if tonumber(ends) <= now then
    table.insert(ended, entries[index])
  elseif entries[index] == ARGV[1] then
    return 2
  else
    all = all + 1
    if tenant == ARGV[2] then
      own = own + 1
    end
  end
end
if all >= tonumber(ARGV[3]) or own >= tonumber(ARGV[4]) then
  return 0
end
redis.call('HSET', KEYS[1], ARGV[1], (now + ARGV[5]) .. ' ' .. ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[5])
for _, name in ipairs(ended) do
  if name ~= ARGV[1] then
    redis.call('HDEL', KEYS[1], name)
  end
end
return 1
"""


class Asked(IntEnum):
    """What became of a wish."""

    REFUSED = 0  # as many are wanted as may be, in all or of the tenant
    FIRST = 1  # it is for the caller to send a message
    AGAIN = 2  # somebody did so not long ago


def most_drawings(*, limit: int) -> int:
    """Return how many images may be wanted at a time, of queues of ``limit`` messages."""
    return max(limit // _SHARE_OF_QUEUE, 2)


def ask(name: str, *, tenant: str, limit: int) -> Asked:
    """Note that a tenant wants an image, and say whether that was known.

    Raises:
        DispatchError: the broker does not answer, or refuses.
    """
    most = most_drawings(limit=limit)
    arguments = [name, tenant, most, most // 2, ASKED_S]
    with broker.redis_client() as client:
        # The transport's client puts its prefix before the keys of simple commands only.
        return Asked(client.eval(_ASK, 1, broker.key(_KEY), *arguments))


def forget(name: str) -> None:
    """Note that an image is drawn, or will not be; told to a broker that is away it ends later."""
    with suppress(DispatchError), broker.redis_client() as client:
        client.hdel(_KEY, name)
