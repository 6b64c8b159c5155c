"""Leases of streams: one session at a time feeds a stream, by a lease in Redis (`lease`) that it renews.

Beside the lease there is a hash for each stream, which outlives the lease, so that a stream is known by name after its
client has left (for 48 hours, or for ten minutes if the client has ended it):

    token  client  instance  peer  since     the last session with the lease; without a token: it was released
    log  acknowledged                        all up to here is durable in that log; a lower bound
    exact  but                               the epoch in which the bound is exact: no client holds a receipt
                                             for more, or only the client `but` does

A Redis that restarted (or was emptied, or replaced in a failover) may have lost leases of live sessions. So for one
lease time after that, its settling time, it grants a stream only to the client that held it: live sessions renew within
that time, and others have ended. Leases that it still has are honoured at once. A sender that knows that no session can
be alive, because the log is empty, ends the settling time, so that no client waits.

An exact bound is valid for one epoch: a Redis restored to an older state lacks the last receipts. A claim proves
nothing about the receipts of other clients, so a session makes the bound exact only if it was in doubt for its own
client alone.

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

# A stream that has not been fed for this long is forgotten here. Later than consumers forget its origin: knowing it
# for longer can only prevent duplicates.
STREAM_KEPT_MS = 2 * ORIGIN_TTL_NS // 1_000_000

# A stream that its client has ended is stored as long as consumers know its origin. A client reconnects under that
# name only when its last receipts were lost, and most streams end.
ENDED_KEPT_MS = ENDED_TTL_NS // 1_000_000

# Renewals per request to Redis.
_RENEWALS_MAX = 500

# Sequence numbers are text of this width, which compares as text: Lua's numbers are doubles, and would round them.
_WIDTH = 20

# For scripts that need the time. KEYS: the stream, its lease, the epoch of this Redis, each if needed.
_TIME = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function number(value) return string.format('%.0f', value) end
"""

# A Redis that was restarted, emptied or promoted to primary begins an epoch. ARGV[1]: ms of the lease.
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
-- A stream that is unknown, after Redis has remembered for longer than it stores streams, was fed by no client.
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

# ARGV: lease ms, the epoch whose settling time ends.
_SKIP_SETTLING = f"""{_TIME}{_EPOCH}
if epoch == ARGV[2] then redis.call('HSET', KEYS[1], 'since', '0') end
"""

# Stores ARGV[5] as acknowledged, unless it is less than the stored value.
_NOTE = """
local known = redis.call('HMGET', KEYS[1], 'log', 'acknowledged')
if known[1] ~= ARGV[3] or not known[2] or known[2] < ARGV[5] then
  redis.call('HSET', KEYS[1], 'log', ARGV[3], 'acknowledged', ARGV[5])
end
redis.call('PEXPIRE', KEYS[1], ARGV[4])
"""

# Acknowledgements of a session that has lost its stream are still true; without them its last receipts are unknown.
_LATE_RELEASE = """
local known = redis.call('HMGET', KEYS[1], 'log', 'acknowledged')
if known[1] == ARGV[3] and known[2] and known[2] < ARGV[5] then
  redis.call('HSET', KEYS[1], 'acknowledged', ARGV[5])
end
return 0
"""

# ARGV: lease ms, token, log, kept ms, acknowledged, client, instance, peer. Acquires a stream that Redis lost again.
_RENEW = f"""{LEASE}{_TIME}
if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('HSET', KEYS[1], 'token', ARGV[2], 'client', ARGV[6], 'instance', ARGV[7], 'peer', ARGV[8],
    'since', number(now))
end
if redis.call('HGET', KEYS[1], 'token') ~= ARGV[2] or not hold(KEYS[2], ARGV[2], ARGV[1], true) then {_LATE_RELEASE} end
{_NOTE}
return 1
"""

# ARGV: nothing, token, log, kept ms, acknowledged, whether its client holds no receipt for more ('1' or ''). Deletes
# the token, so that a late renewal does not acquire the stream again.
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

    `token` identifies the session, `client` its client across sessions ("": a client with this session only).
    `instance` and `peer` are for messages. `log` identifies the log to which `acknowledged` sequence numbers refer.
    """

    stream: str
    token: str
    client: str
    instance: str
    peer: str
    log: str


@dataclass(frozen=True, slots=True)
class Granted:
    """The claim has the stream for one lease time from now. All up to `acknowledged` is durable; 0: unknown.

    `exact`: no client holds a receipt for more. False when the last session ended without releasing the stream (its
    sender died, the same client took it over), until the same client releases it; and when Redis may have lost data.
    """

    acknowledged: SequenceNumber
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Held:
    """Another client has held the stream since `since_s` (Unix s), and will for at least `left_s`."""

    instance: str
    peer: str
    since_s: float
    left_s: float


@dataclass(frozen=True, slots=True)
class Settling:
    """Redis has restarted: for `left_s` only the clients that held streams get them. `epoch`: since the restart."""

    left_s: float
    epoch: str


Answer: TypeAlias = Granted | Held | Settling


class RedisLeases:
    """Leases of streams, `lease_ms` long. Raises StoreError, after which every call may be retried.

    A lease runs from when Redis runs the command, so a holder that counts from when it sent the command never counts
    too long.
    """

    def __init__(self, store: RedisStore, *, lease_ms: int) -> None:
        self._store = store
        self._lease_ms = lease_ms
        self._epoch = store.key("epoch")

    def notice_restart(self) -> None:
        """Makes Redis detect that it has restarted, so that its settling time begins."""
        self._store.ask(
            "asking for leases",
            lambda client: client.eval(f"{_TIME}{_EPOCH}", 1, self._epoch, str(self._lease_ms)),
        )

    def acquire(self, claim: Claim) -> Answer:
        """Acquires the stream if it is free, or held by the same client, whose earlier session then loses it."""
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
        """Ends the settling time of `epoch`, unless Redis has restarted since.

        Only for callers that found, after that answer, that no session can have opened before it.
        """
        self._store.ask(
            "ending the time to settle",
            lambda client: client.eval(_SKIP_SETTLING, 1, self._epoch, str(self._lease_ms), epoch),
        )

    def renew(self, claims: Sequence[tuple[Claim, SequenceNumber]]) -> list[bool]:
        """Renews granted claims, and stores what each has acknowledged; False for a stream that another session has.

        A stream that Redis has lost is acquired again, unless another session has it.
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
        """Releases the stream if the claim still holds it; stores what is acknowledged in any case.

        `exact`: its client holds no receipt for more. In Granted it means that no client does.
        `ended`: no client will reconnect under the stream's name, so it is soon forgotten.
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
        """Up to where a stream is durable in that log, by its sessions' reports; 0: unknown."""
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
