"""Group membership of a resident processor: its members, the assignment of partitions, and their holders.

| key                                     | type   | holds                                                       |
| --------------------------------------- | ------ | ----------------------------------------------------------- |
| `bettong:{application}:resident`         | hash   | the driver's assignment: run, epoch, stop, and slots        |
|                                         |        | (JSON: partition -> slot)                                   |
| `bettong:{application}:resident:{slot}`  | string | a lease (`lease`) of the slot's task, by its incarnation;   |
|                                         |        | deleted at once when the driver knows that the task ended   |
| `bettong:{application}:resident:holders` | hash   | partition -> `{slot}:{incarnation}` that holds it           |
| `bettong:{application}:resident:refused` | set    | partitions that a task wanted while another one held them   |

A partition is written `{stage}/{partition}`. A task sends heartbeats, each one script: it renews the lease, reports the
partitions that the task holds and has revoked, and returns the assignment, acquired and lost partitions. A partition
goes to the slot that the assignment names, and only once its holder has revoked it or is dead. This keeps two tasks
from doing the same work. That results count once is up to the delivery rule, so a Redis that lost this data, or was
restored to an older state, only causes repeated work.

Redis may list a task as holder without the task knowing: the response that granted the partition was lost, or Redis was
restored to an older state. So a heartbeat revokes partitions that another task was refused because of this task, unless
it reports that the task holds or wants them.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from bettong.edges.redis_store.connection import Client, RedisStore, clock_ns
from bettong.edges.redis_store.lease import LEASE
from bettong.identifiers import PartitionId

# The next heartbeat makes up for a failed one; a heartbeat must not block while Redis is unavailable.
_ATTEMPTS_S = 0.5

# A slot without a heartbeat for this long, one and a half intervals, may have lost its task.
SILENT_MS = 75

# KEYS: the assignment, this slot, the holders, the refused. ARGV: run, slot, incarnation, ms to live, known epoch,
# prefix of slots, number of partitions held, of partitions wanted; then partitions: held, wanted, revoked. Epochs
# increase within a run: an assignment older than the known one is from a Redis restored to an older state. A heartbeat
# revokes 16 random ones of the refused: normally there are none, and when many partitions move it must stay short.
# Those that the task does hold it acquires again in the same script.
_HEARTBEAT = f"""{LEASE}
local assignment = redis.call('HMGET', KEYS[1], 'run', 'epoch', 'slots', 'stop')
if assignment[1] and assignment[1] ~= ARGV[1] then return {{'superseded'}} end
local before = holder_of(KEYS[2])
local is_later = before and tonumber(before) < tonumber(ARGV[3])
if not hold(KEYS[2], ARGV[3], ARGV[4], true, is_later) then return {{'superseded'}} end
local me = ARGV[2] .. ':' .. ARGV[3]
local function revoke(partition)
  if redis.call('HGET', KEYS[3], partition) == me then redis.call('HDEL', KEYS[3], partition) end
end
local function acquire(partition)
  local holder = redis.call('HGET', KEYS[3], partition)
  if holder == me then return true end
  if holder then
    local slot, incarnation = string.match(holder, '(%d+):(%d+)')
    if slot ~= ARGV[2] and holder_of(ARGV[6] .. slot) == incarnation then
      redis.call('SADD', KEYS[4], partition)
      return false
    end
  end
  redis.call('HSET', KEYS[3], partition, me)
  redis.call('SREM', KEYS[4], partition)
  return true
end
local held, wanted, lost, acquired = 8 + ARGV[7], 8 + ARGV[7] + ARGV[8], {{}}, {{}}
for index = wanted + 1, #ARGV do revoke(ARGV[index]) end
for _, partition in ipairs(redis.call('SRANDMEMBER', KEYS[4], 16)) do revoke(partition) end
for index = 9, held do
  if not acquire(ARGV[index]) then lost[#lost + 1] = ARGV[index] end
end
local current = assignment[2] == ARGV[5]
for index = held + 1, wanted do
  if current and acquire(ARGV[index]) then acquired[#acquired + 1] = ARGV[index] end
end
local newer = assignment[2] and tonumber(assignment[2]) > tonumber(ARGV[5])
return {{'answered', assignment[2] or '', (newer and assignment[3]) or '', assignment[4] or '',
  lost, acquired, redis.call('TIME')}}
"""

# KEYS: the assignment, the refused. ARGV: run, epoch, slots of partitions, stop. A run that is no longer the newest
# writes nothing.
_PUBLISH_ASSIGNMENT = """
local run = redis.call('HGET', KEYS[1], 'run')
if run and run ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'run', ARGV[1], 'epoch', ARGV[2], 'slots', ARGV[3], 'stop', ARGV[4])
redis.call('DEL', KEYS[2])
return 1
"""

# KEYS: a slot. ARGV: incarnation, the longest remaining TTL of a silent slot. Another task's lease, or one that has
# been renewed meanwhile, stays.
_DISMISS_TASK = f"""{LEASE}
local _, left = holder_of(KEYS[1])
if left > tonumber(ARGV[2]) then return 0 end
return release(KEYS[1], ARGV[1])
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task that runs in a slot. `incarnation` increases with each task of a slot, also across runs."""

    run: str
    slot: int
    incarnation: int


@dataclass(frozen=True, slots=True)
class SlotAssignment:
    """Which slot is to hold each partition, as of an epoch (0: nothing is assigned yet), and whether to stop all tasks.

    Each assignment of a run has a higher epoch than those before; tasks ignore others.
    """

    epoch: int = 0
    slots: Mapping[PartitionId, int] = field(default_factory=dict)
    stop: bool = False


@dataclass(frozen=True, slots=True)
class HeartbeatResponse:
    """The answer to a heartbeat. `assignment`: if newer than the task's, else None. `lost`: held by other tasks.

    `redis_ns`: the time by Redis's clock, Unix ns.
    """

    assignment: SlotAssignment | None
    lost: frozenset[PartitionId]
    acquired: frozenset[PartitionId]
    redis_ns: int


@dataclass(frozen=True, slots=True)
class MembershipView:
    """Membership as the driver sees it. `epoch`: of the assignment in Redis; None if it has none of this run.

    `tasks`: the incarnations of the tasks that live, by slot. `silent`: for how many ms silent ones have sent no
    heartbeat.
    """

    epoch: int | None
    tasks: Mapping[int, int]
    holders: Mapping[PartitionId, int]
    silent: Mapping[Task, int]

    @property
    def members(self) -> frozenset[int]:
        """The slots whose tasks live."""
        return frozenset(self.tasks)


class RedisMembership:
    """The membership of one application. A slot without a heartbeat for `ttl_ms` is dead, and for `silent_ms` silent.

    Raises StoreError.
    """

    def __init__(self, store: RedisStore, *, ttl_ms: int, silent_ms: int = SILENT_MS) -> None:
        self._store = store
        self._ttl_ms = ttl_ms
        # The longest remaining TTL of a silent slot.
        self._silent_left_ms = ttl_ms - silent_ms
        self._assignment = store.key("resident")
        self._holders = store.key("resident", "holders")
        self._refused = store.key("resident", "refused")

    def begin_run(self, run: str) -> int:
        """Begins the run of a new driver, which supersedes the tasks of earlier runs. Returns the time by Redis, us."""

        def command(client: Client) -> int:
            with client.pipeline(transaction=True) as together:
                together.delete(self._assignment, self._holders, self._refused)
                together.hset(self._assignment, mapping={"run": run, "epoch": 0, "slots": "{}", "stop": 0})
                together.time()
                *_, time = together.execute()
            return clock_ns(time) // 1_000

        return self._store.ask("beginning a run", command)

    def publish_assignment(self, run: str, assignment: SlotAssignment) -> bool:
        """Writes the assignment; False when a newer run has begun."""
        slots = {str(partition): slot for partition, slot in assignment.slots.items()}
        arguments = (run, assignment.epoch, json.dumps(slots), int(assignment.stop))
        done = self._store.ask(
            "publishing the assignment",
            lambda client: client.eval(_PUBLISH_ASSIGNMENT, 2, self._assignment, self._refused, *arguments),
            attempts_s=_ATTEMPTS_S,
        )
        return bool(done)

    def read_members(self, run: str, slots: Iterable[int]) -> MembershipView:
        """A consistent view of the live slots among these, the holders of partitions, and the silent tasks."""
        numbers = list(slots)

        def command(client: Client) -> MembershipView:
            with client.pipeline(transaction=True) as together:
                together.hmget(self._assignment, "run", "epoch")
                together.hgetall(self._holders)
                for slot in numbers:
                    together.get(self._slot(slot))
                    together.pttl(self._slot(slot))
                (newest, epoch), holders, *found = together.execute()
            members = list(zip(numbers, found[::2], found[1::2], strict=True))
            lives = {slot: incarnation for slot, incarnation, _ in members if incarnation is not None}
            held = {_partition_of(partition): holder.partition(b":") for partition, holder in holders.items()}
            return MembershipView(
                int(epoch) if newest == run.encode() else None,
                {slot: int(incarnation) for slot, incarnation in lives.items()},
                {
                    partition: int(slot)
                    for partition, (slot, _, incarnation) in held.items()
                    if lives.get(int(slot)) == incarnation
                },
                {
                    Task(run=run, slot=slot, incarnation=int(incarnation)): self._ttl_ms - left_ms
                    for slot, incarnation, left_ms in members
                    if incarnation is not None and left_ms <= self._silent_left_ms
                },
            )

        return self._store.ask("reading the members", command, attempts_s=_ATTEMPTS_S)

    def dismiss_task(self, task: Task) -> bool:
        """Declares a task dead, so that others may acquire its partitions.

        False for a task that sent a heartbeat meanwhile, or whose slot has another task.

        If it is alive after all, it is a member again with its next heartbeat.
        """
        arguments = (task.incarnation, self._silent_left_ms)
        done = self._store.ask(
            "dismissing a task",
            lambda client: client.eval(_DISMISS_TASK, 1, self._slot(task.slot), *arguments),
            attempts_s=_ATTEMPTS_S,
        )
        return bool(done)

    def send_heartbeat(
        self,
        task: Task,
        epoch: int,
        *,
        held: Iterable[PartitionId] = (),
        wanted: Iterable[PartitionId] = (),
        revoked: Iterable[PartitionId] = (),
    ) -> HeartbeatResponse | None:
        """Sends a heartbeat; returns None if the task is superseded, by a newer run or a newer task of its slot.

        `epoch`: of the assignment that the task knows. `wanted` is ignored unless that is the newest one.
        """
        have, want, leave = ([str(each) for each in some] for some in (held, wanted, revoked))
        head = (
            task.run,
            task.slot,
            task.incarnation,
            self._ttl_ms,
            epoch,
            self._slot(""),
            len(have),
            len(want),
        )
        keys = (self._assignment, self._slot(task.slot), self._holders, self._refused)
        answer = self._store.ask(
            "sending a heartbeat",
            lambda client: client.eval(_HEARTBEAT, len(keys), *keys, *head, *have, *want, *leave),
            attempts_s=_ATTEMPTS_S,
        )
        if answer[0] == b"superseded":
            return None
        _, newest, slots, stop, lost, acquired, time = answer
        assignment = (
            SlotAssignment(
                int(newest),
                {PartitionId.parse(text): slot for text, slot in json.loads(slots).items()},
                stop == b"1",
            )
            if slots
            else None
        )
        return HeartbeatResponse(
            assignment,
            frozenset(map(_partition_of, lost)),
            frozenset(map(_partition_of, acquired)),
            clock_ns(time),
        )

    def _slot(self, slot: int | str) -> str:
        return self._store.key("resident", str(slot))


class Holders(NamedTuple):
    """The slot that holds each partition now, in any run; without partitions of dead slots.

    `incarnations`: of the current task of each of these slots. Both are empty under another schedule.
    """

    slots: dict[PartitionId, int]
    incarnations: dict[int, int]


def read_holders(store: RedisStore, *, attempts_s: float = _ATTEMPTS_S) -> Holders:
    """Reads the holders of all partitions. Raises StoreError."""

    def command(client: Client) -> Holders:
        found = list(
            filter(None, map(_parse_holder, client.hgetall(store.key("resident", "holders")).items()))
        )
        slots = sorted({slot for _, slot, _ in found})
        keys = [store.key("resident", str(slot)) for slot in slots]
        lives = dict(zip(slots, client.mget(keys), strict=True)) if keys else {}
        held = [(partition, slot, task) for partition, slot, task in found if lives[slot] == task]
        return Holders(
            {partition: slot for partition, slot, _ in held},
            {slot: int(task) for _, slot, task in held if task.isdigit()},
        )

    return store.ask("reading the holders of partitions", command, attempts_s=attempts_s)


def _parse_holder(entry: tuple[bytes, bytes]) -> tuple[PartitionId, int, bytes] | None:
    """Parses an entry of holders to partition, slot and incarnation; None if it is invalid."""
    slot, _, incarnation = entry[1].partition(b":")
    try:
        return _partition_of(entry[0]), int(slot), incarnation
    except ValueError:
        return None


def _partition_of(partition: bytes) -> PartitionId:
    return PartitionId.parse(partition.decode())
