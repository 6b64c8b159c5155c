"""Live metrics: the state that services report, for people and Prometheus."""

import os
import time
from collections.abc import Mapping

from bettong.edges.redis_store.connection import ATTEMPTS_S, Client, RedisStore, clock_ns
from bettong.identifiers import PartitionId
from bettong.metrics import (
    AGE_S,
    GAP,
    GAP_ALARM_S,
    GAP_OFFSET,
    GAP_S,
    GAP_SINCE_S,
    LEFT_OUT,
    LEFT_OUT_S_MAX,
    LEFT_OUT_SINCE_S,
    OFFSET,
    PID,
    TTL_S,
)

# A failed write is made up for by the next one, so writers wait only long enough to reconnect after a restart.
_WRITE_ATTEMPTS_S = 0.5

# The TTL of a live record in intervals, and at least some seconds: a late write does not make an instance vanish, and
# the record of a dead one soon expires.
_INTERVALS_PER_TTL = 10
_TTL_S_MIN = 10.0

_DATED = frozenset(
    {GAP.name, GAP_S.name, GAP_SINCE_S, GAP_ALARM_S, GAP_OFFSET, LEFT_OUT.name, LEFT_OUT_SINCE_S}
)

MetricValues = Mapping[str, str | int | float]

# KEYS: the record, the index. ARGV: when the writer's run began, "" if its tasks never run twice; the record's name in
# the index; metrics and values alternately. A writer that replays has not reached gaps again that it reported before:
# its writes do not change gaps until it is past the offset at which gaps were last written.
_PARTITION = f"""
local new = {{}}
for index = 3, #ARGV, 2 do new[ARGV[index]] = ARGV[index + 1] end
local run, offset, furthest = unpack(redis.call('HMGET', KEYS[1], 'run', '{OFFSET.name}', '{GAP_OFFSET}'))
local new_offset = tonumber(new['{OFFSET.name}'] or '') or math.huge
local is_behind = new_offset < (tonumber(offset or '') or 0)
local is_replay = new_offset < (tonumber(furthest or offset or '') or 0)
if ARGV[1] ~= '' then
  local later = tonumber(ARGV[1]) - (tonumber(run or '') or 0)
  if later < 0 or later == 0 and is_behind then return 0 end
  redis.call('HSET', KEYS[1], 'run', ARGV[1])
end
redis.call('SADD', KEYS[2], ARGV[2])
local now = redis.call('TIME')
for name, value in pairs(new) do
  local is_dated = name == '{GAP.name}' or name == '{LEFT_OUT.name}'
  if is_dated and value ~= (redis.call('HGET', KEYS[1], name) or '') and not is_replay then
    redis.call('HSET', KEYS[1], name .. '_since_s', string.format('%s.%06d', now[1], now[2]))
  end
  if not (is_dated and is_replay) then redis.call('HSET', KEYS[1], name, value) end
end
if new['{GAP.name}'] and new['{OFFSET.name}'] and not is_replay then
  redis.call('HSET', KEYS[1], '{GAP_OFFSET}', new['{OFFSET.name}'])
end
return 1
"""


def ttl_of(interval_s: float) -> float:
    """The TTL, in seconds, of a live record that is written every `interval_s`."""
    return max(_TTL_S_MIN, _INTERVALS_PER_TTL * interval_s)


class LiveMetrics:
    """Live metrics, named in `bettong.metrics`: one record per instance and per partition. Raises StoreError.

    `latest`: the record last passed to `write_live` here, even if writing it failed.
    """

    def __init__(self, store: RedisStore) -> None:
        self.latest: MetricValues = {}
        self._written_s: float | None = None
        self._store = store
        self._instances = store.key("live")
        self._partitions = store.key("partitions")

    def write_live(self, instance: str, metrics: MetricValues, ttl_s: float) -> None:
        """Replaces the record of an instance. It expires after `ttl_s` (see `ttl_of`) unless it is written again.

        It also gets the id of this process.
        """
        self.latest = metrics
        key = self._store.key("live", instance)
        pairs = {metric: str(value) for metric, value in metrics.items()}
        pairs |= {PID: str(os.getpid()), TTL_S: str(ttl_s)}

        def command(client: Client) -> None:
            with client.pipeline(transaction=True) as together:
                together.delete(key)
                together.hset(key, mapping=pairs)
                together.pexpire(key, int(ttl_s * 1000))
                together.sadd(self._instances, instance)
                together.execute()

        begun_s = time.monotonic()
        self._store.ask(f"writing metrics of {instance}", command, attempts_s=_WRITE_ATTEMPTS_S)
        self._written_s = begun_s

    def age_s(self) -> float | None:
        """The time since the last successful `write_live` here began; None before the first."""
        return None if self._written_s is None else time.monotonic() - self._written_s

    def write_partition(self, partition: PartitionId, metrics: MetricValues) -> None:
        """Updates these metrics in the record of a partition, which does not expire. Other metrics in it stay."""
        self._write_partition(partition, metrics, "")

    def write_folded(self, partition: PartitionId, metrics: MetricValues, *, begun_ms: int) -> None:
        """As `write_partition`, by a run that began at `begun_ms`; `metrics` include an offset.

        Changes nothing if a later run has written, or the same run at a higher offset: when a task runs twice, the
        abandoned copy may write last.
        """
        self._write_partition(partition, metrics, str(begun_ms))

    def live(self, *, attempts_s: float = ATTEMPTS_S) -> dict[str, dict[str, str]]:
        """The records of live instances, by instance; each with its age. No attempt begins after `attempts_s`."""
        return self._records(self._instances, "live", attempts_s)[1]

    def partitions(self, *, attempts_s: float = ATTEMPTS_S) -> dict[PartitionId, dict[str, str]]:
        """The records of partitions, by (stage, partition). No attempt begins after `attempts_s`."""
        now_s, records = self._records(self._partitions, "partition", attempts_s)
        named = ((_partition(name), metrics) for name, metrics in records.items())
        return {id_: shown(metrics, now_s) for id_, metrics in named if id_ is not None}

    def forget_partitions(self) -> None:
        """Deletes the records of all partitions."""

        def command(client: Client) -> None:
            names = [name.decode() for name in client.smembers(self._partitions)]
            with client.pipeline(transaction=True) as together:
                together.delete(self._partitions, *(self._store.key("partition", name) for name in names))
                together.execute()

        self._store.ask("forgetting metrics of partitions", command)

    def _write_partition(self, partition: PartitionId, metrics: MetricValues, begun_ms: str) -> None:
        name = str(partition)
        pairs = [str(part) for pair in metrics.items() for part in pair]
        key = self._store.key("partition", name)
        self._store.ask(
            f"writing metrics of {name}",
            lambda client: client.eval(_PARTITION, 2, key, self._partitions, begun_ms, name, *pairs),
            attempts_s=_WRITE_ATTEMPTS_S,
        )

    def _records(self, index: str, kind: str, attempts_s: float) -> tuple[float, dict[str, dict[str, str]]]:
        """The time by Redis's clock, Unix s, and the records by name."""

        def command(client: Client) -> tuple[float, dict[str, dict[str, str]]]:
            names = sorted(name.decode(errors="replace") for name in client.smembers(index))
            with client.pipeline(transaction=False) as together:
                for name in names:
                    together.hgetall(self._store.key(kind, name))
                    together.pttl(self._store.key(kind, name))
                together.time()
                *answers, now = together.execute()
            records, lives_ms = answers[::2], answers[1::2]
            gone = [name for name, record in zip(names, records, strict=True) if not record]
            if gone:  # if an instance is alive after all, its next record adds it again
                client.srem(index, *gone)
            return clock_ns(now) / 1e9, {
                name: _read(record, life_ms)
                for name, record, life_ms in zip(names, records, lives_ms, strict=True)
                if record
            }

        return self._store.ask("reading metrics", command, attempts_s=attempts_s)


def shown(record: Mapping[str, str], now_s: float) -> dict[str, str]:
    """A partition's record for display: with a gap if it is old enough for an alarm, and LEFT_OUT if it is recent.

    `now_s`: the time by Redis's clock.
    """
    found = {name: value for name, value in record.items() if name not in _DATED}
    left_out = record.get(LEFT_OUT.name)
    if left_out and now_s - _seconds(record, LEFT_OUT_SINCE_S) < LEFT_OUT_S_MAX:
        found[LEFT_OUT.name] = left_out
    if (gap := record.get(GAP.name)) and GAP_SINCE_S in record:
        waited_s = now_s - _seconds(record, GAP_SINCE_S)
        if waited_s >= _seconds(record, GAP_ALARM_S):
            found |= {GAP.name: gap, GAP_S.name: str(round(waited_s))}
    return found


def _partition(name: str) -> PartitionId | None:
    """Parses the name of a partition; None if it is invalid, because others may write to that Redis, too."""
    try:
        return PartitionId.parse(name)
    except ValueError:
        return None


def _seconds(record: Mapping[str, str], name: str) -> float:
    """A time in a record; 0 if it is missing or invalid."""
    try:
        return float(record.get(name, 0))
    except ValueError:
        return 0.0


def _read(record: Mapping[bytes, bytes], life_ms: int) -> dict[str, str]:
    """A record as text; one that expires also gets its age, derived from its remaining TTL."""
    metrics = {
        metric.decode(errors="replace"): value.decode(errors="replace") for metric, value in record.items()
    }
    if TTL_S in metrics and life_ms >= 0:
        metrics[AGE_S] = f"{max(0.0, _seconds(metrics, TTL_S) - life_ms / 1000):.1f}"
    return metrics
