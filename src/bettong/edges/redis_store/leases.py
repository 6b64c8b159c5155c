"""Who feeds a stream: one session at a time, known by a lease in Redis (`lease`) that runs out unless it is renewed.

Beside the lease, one hash a stream, which outlives it, so that a stream is known by name after its client is gone
(for 48 hours, or for ten minutes where the client has ended it):

    token  client  instance  peer  since     the session that had the lease last; no token: it gave the stream back
    log  acknowledged                        up to here all is durable in that log; a lower bound
    exact  but                               the epoch in which it is more than that: no client holds a receipt
                                             for anything above, or only that one does

A Redis that started anew (or was emptied, or another one since a failover) may have forgotten leases that sessions
still count on. So for one lease time after that it gives no stream to a stranger: sessions that are alive renew within
that time, and the others have stopped by themselves. What it kept is honoured at once. A sender that knows
that no session can be alive, because the log is empty, says so, and no client waits.

What is exact was so in one epoch: a Redis that came back older has forgotten the receipts of its last moment. A claim
proves nothing of what other clients hold, so a session makes exact only what was in doubt for its client alone.

A second session under a name is a mistake of its clients. Resends count once by the delivery rule, which needs no lease
(docs/delivery.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from bettong.delivery import ENDED_TTL_NS, ORIGIN_TTL_NS
from bettong.edges.redis_store.connection import Client, RedisStore
from bettong.edges.redis_store.lease import LEASE
from bettong.errors import StoreError
from bettong.identifiers import SequenceNumber

# A stream that nobody has fed for this long is forgotten here. Later than consumers forget its origin: what is
# known here longer can only prevent repetitions.
STREAM_KEPT_MS = 2 * ORIGIN_TTL_NS // 1_000_000

# A stream that its client has ended is kept as long as consumers know its origin. A client comes back under that name
# only when its last receipts were lost, and most streams end.
ENDED_KEPT_MS = ENDED_TTL_NS // 1_000_000

# Renewals that travel to Redis together.
_RENEWALS_MAX = 500

# Sequences as text of this width: Lua's numbers are doubles and would round them; these compare as text.
_WIDTH = 20

# Run by scripts that need the time. KEYS: the stream, its lease, the epoch of this Redis, each where it is needed.
_TIME = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function number(value) return string.format('%.0f', value) end
"""

# A restarted or emptied Redis, or one that has become the primary, begins an epoch. ARGV[1]: the lease, ms.
_EPOCH = """
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
if redis.call('HGET', KEYS[#KEYS], 'run') ~= run then
  redis.call('HSET', KEYS[#KEYS], 'run', run, 'since', number(now), 'id', time[1] .. '.' .. time[2])
end
local epoch = run .. ' ' .. (redis.call('HGET', KEYS[#KEYS], 'id') or '')
local began = tonumber(redis.call('HGET', KEYS[#KEYS], 'since'))
local unsettled = began + ARGV[1] - now
"""

# ARGV: lease ms, token, log, kept ms, client, instance, peer.
_ACQUIRE = f"""{LEASE}{_TIME}{_EPOCH}
local found = redis.call('HMGET', KEYS[1], 'token', 'client', 'instance', 'peer', 'since', 'log', 'acknowledged',
  'exact', 'but')
local token, client = found[1], found[2]
local holder, left = holder_of(KEYS[2])
local ours = token and (token == ARGV[2] or (ARGV[5] ~= '' and client == ARGV[5]))
if token and holder and not ours then
  return {{'held', number(left), found[3], found[4], found[5]}}
end
if unsettled > 0 and not ours then return {{'settling', number(unsettled), epoch}} end
hold(KEYS[2], ARGV[2], ARGV[1], true, true)
local acknowledged = found[6] == ARGV[3] and found[7] or ''
local me = ARGV[5] ~= '' and ARGV[5] or ARGV[2]
-- A stream of which nothing is known, for as long as anything is remembered, was fed by nobody.
local new = not found[6] and now - began > tonumber(ARGV[4])
local same = found[6] == ARGV[3] and found[8] == epoch
local exact = same and not found[9] and '1' or ''
if new or same and (not found[9] or found[9] == me) then
  redis.call('HSET', KEYS[1], 'exact', epoch, 'but', me)
else
  redis.call('HDEL', KEYS[1], 'exact', 'but')
end
redis.call('HSET', KEYS[1], 'token', ARGV[2], 'client', ARGV[5], 'instance', ARGV[6], 'peer', ARGV[7],
  'since', number(now), 'log', ARGV[3], 'acknowledged', acknowledged)
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return {{'granted', acknowledged, exact}}
"""

# ARGV: lease ms, the epoch whose time to settle ends.
_SKIP_SETTLING = f"""{_TIME}{_EPOCH}
if epoch == ARGV[2] then redis.call('HSET', KEYS[1], 'since', '0') end
"""

# Stores ARGV[5], unless more is known already.
_NOTE = """
local known = redis.call('HMGET', KEYS[1], 'log', 'acknowledged')
if known[1] ~= ARGV[3] or not known[2] or known[2] < ARGV[5] then
  redis.call('HSET', KEYS[1], 'log', ARGV[3], 'acknowledged', ARGV[5])
end
redis.call('PEXPIRE', KEYS[1], ARGV[4])
"""

# What a session acknowledged before it lost its stream is as true: else nobody would know of its last receipts.
_LATE_RELEASE = """
local known = redis.call('HMGET', KEYS[1], 'log', 'acknowledged')
if known[1] == ARGV[3] and known[2] and known[2] < ARGV[5] then
  redis.call('HSET', KEYS[1], 'acknowledged', ARGV[5])
end
return 0
"""

# ARGV: lease ms, token, log, kept ms, acknowledged, client, instance, peer. A stream that Redis lost is taken again.
_RENEW = f"""{LEASE}{_TIME}
if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('HSET', KEYS[1], 'token', ARGV[2], 'client', ARGV[6], 'instance', ARGV[7], 'peer', ARGV[8],
    'since', number(now))
end
if redis.call('HGET', KEYS[1], 'token') ~= ARGV[2] or not hold(KEYS[2], ARGV[2], ARGV[1], true) then {_LATE_RELEASE} end
{_NOTE}
return 1
"""

# ARGV: nothing, token, log, kept ms, acknowledged, whether its client holds no receipt for more ('1' or ''). Without a
# token a late renewal does not take it again.
_RELEASE = f"""{LEASE}
if redis.call('HGET', KEYS[1], 'token') ~= ARGV[2] then {_LATE_RELEASE} end
redis.call('HDEL', KEYS[1], 'token')
release(KEYS[2], ARGV[2])
{_NOTE}
if ARGV[6] == '1' then redis.call('HDEL', KEYS[1], 'but') end
return 1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A session that claims a stream.

    `token` is this session's alone, `client` its client's over all its sessions ("": a client of its own). `instance`
    and `peer` are for people. `log` identifies the log that `acknowledged` sequences speak of.
    """

    stream: str
    token: str
    client: str
    instance: str
    peer: str
    log: str


@dataclass(frozen=True, slots=True)
class Granted:
    """The stream is the claim's, from now for one lease time. All up to `acknowledged` is durable; 0: not known.

    `exact`: nobody holds a receipt for more. It is not when the last session ended without giving the stream back (its
    sender died, the same client took it over), until the same client has; nor when Redis may have lost what it knew.
    """

    acknowledged: SequenceNumber
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Held:
    """Another client holds the stream, since then (Unix s), and for `left_s` at least."""

    instance: str
    peer: str
    since_s: float
    left_s: float


@dataclass(frozen=True, slots=True)
class Settling:
    """Redis has started anew: for `left_s` no stream goes to a client that did not hold it. `epoch`: since when."""

    left_s: float
    epoch: str


Answer: TypeAlias = Granted | Held | Settling


class RedisLeases:
    """Leases of streams, `lease_ms` long. Raises StoreError; everything may be tried again after one.

    By whose clock: a lease runs from when Redis carries a command out, so who counts from when it sent the command
    never counts too long.
    """

    def __init__(self, store: RedisStore, *, lease_ms: int) -> None:
        self._store = store
        self._lease_ms = lease_ms
        self._epoch = store.key("epoch")

    def notice_restart(self) -> None:
        """Lets Redis notice that it has started anew, so that the time in which it settles begins."""
        self._store.ask(
            "asking for leases",
            lambda client: client.eval(f"{_TIME}{_EPOCH}", 1, self._epoch, str(self._lease_ms)),
        )

    def acquire(self, claim: Claim) -> Answer:
        """Takes the stream when nobody holds it, or the same client does: that session has lost it then."""
        found: list[bytes] = self._store.ask(
            f"acquiring stream {claim.stream}",
            lambda client: client.eval(
                _ACQUIRE, 3, *self._keys(claim), self._epoch, *self._arguments(claim), *_names(claim)
            ),
        )
        kind, *fields = (field.decode() for field in found)
        if kind == "held":
            left_ms, instance, peer, since_ms = fields
            return Held(instance, peer, int(since_ms) / 1000, int(left_ms) / 1000)
        if kind == "settling":
            left_ms, epoch = fields
            return Settling(int(left_ms) / 1000, epoch)
        acknowledged, exact = fields
        return Granted(SequenceNumber(int(acknowledged or 0)), exact == "1")

    def skip_settling(self, epoch: str) -> None:
        """Ends the time in which Redis settles, if it has not started anew since that answer.

        Only for callers that found, after the answer, that no session can have opened before it.
        """
        self._store.ask(
            "ending the time to settle",
            lambda client: client.eval(_SKIP_SETTLING, 1, self._epoch, str(self._lease_ms), epoch),
        )

    def renew(self, claims: Sequence[tuple[Claim, SequenceNumber]]) -> list[bool]:
        """Renews claims that were granted, each with what is acknowledged; False for a stream that is another's now.

        A stream that Redis has lost is taken again, if nobody else took it.
        """

        def command(client: Client, part: Sequence[tuple[Claim, SequenceNumber]]) -> list[Any]:
            with client.pipeline(transaction=False) as together:
                for claim, acknowledged in part:
                    together.eval(
                        _RENEW,
                        2,
                        *self._keys(claim),
                        *self._arguments(claim),
                        _text(acknowledged),
                        *_names(claim),
                    )
                answers: list[Any] = together.execute()
            return answers

        found: list[Any] = []
        for start in range(0, len(claims), _RENEWALS_MAX):
            together = partial(command, part=claims[start : start + _RENEWALS_MAX])
            found += self._store.ask(f"renewing {len(claims)} stream(s)", together)
        return [answer == 1 for answer in found]

    def release(
        self, claim: Claim, acknowledged: SequenceNumber, *, exact: bool = False, ended: bool = False
    ) -> None:
        """Gives the stream back, if it is still the claim's; what is acknowledged is noted anyway.

        `exact`: its client holds no receipt for more. See Granted, which asks that of all clients.
        `ended`: nobody comes back under the stream's name, so it is soon forgotten.
        """
        self._store.ask(
            f"releasing stream {claim.stream}",
            lambda client: client.eval(
                _RELEASE,
                2,
                *self._keys(claim),
                *self._arguments(claim, kept_ms=ENDED_KEPT_MS if ended else STREAM_KEPT_MS),
                _text(acknowledged),
                "1" if exact else "",
            ),
        )

    def acknowledged(self, stream: str, log: str) -> SequenceNumber:
        """Up to where a stream is known to be durable in that log, by what sessions have said; 0: not known."""
        found: list[bytes | None] = self._store.ask(
            f"asking for stream {stream}",
            lambda client: client.hmget(self._store.key("stream", stream), "log", "acknowledged"),
        )
        known, acknowledged = found
        if not acknowledged or known != log.encode():
            return SequenceNumber(0)
        try:
            return SequenceNumber(int(acknowledged))
        except ValueError:
            raise StoreError(
                f"stream {stream}: {acknowledged[:100]!r} in Redis at {self._store.key('stream', stream)} is no"
                " sequence; delete that key, and let the client send a frame"
            ) from None

    def _keys(self, claim: Claim) -> tuple[str, str]:
        return self._store.key("stream", claim.stream), self._store.key("lease", claim.stream)

    def _arguments(self, claim: Claim, *, kept_ms: int = STREAM_KEPT_MS) -> tuple[str, ...]:
        return str(self._lease_ms), claim.token, claim.log, str(kept_ms)


def _names(claim: Claim) -> tuple[str, ...]:
    return claim.client, claim.instance, claim.peer


def _text(sequence: SequenceNumber) -> str:
    return str(sequence).zfill(_WIDTH)
