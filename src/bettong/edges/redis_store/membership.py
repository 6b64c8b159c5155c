"""Which slot of a resident processor holds which partition: members, the assignment, and who holds what now.

| key                                     | type   | holds                                                       |
| --------------------------------------- | ------ | ----------------------------------------------------------- |
| `bettong:{application}:resident`         | hash   | the driver's assignment: run, epoch, stop, and slots        |
|                                         |        | (JSON: partition -> slot)                                   |
| `bettong:{application}:resident:{slot}`  | string | a lease (`lease`) of the slot's task, by its incarnation;   |
|                                         |        | goes at once when the driver knows that the task has ended  |
| `bettong:{application}:resident:holders` | hash   | partition -> `{slot}:{incarnation}` that holds it           |
| `bettong:{application}:resident:refused` | set    | partitions that a task wanted while another one held them   |

A partition is written `{stage}/{partition}`. A task sends heartbeats, each one script: it says that it lives, what it
holds and what it has revoked, and reads the assignment, what it has acquired and what it has lost. A partition goes
to the slot that the assignment names, and only once its holder has revoked it or lives no more. This keeps two tasks
from doing one work; that results count once is the delivery rule's doing, so a Redis that forgot all this, or comes
back as it was some time ago, costs nothing but work.

Redis may take a task for a holder that does not know it: the response that granted the partition was lost, or Redis
came back older. So a heartbeat revokes what another task was refused because of this one, unless it says that the task
holds or wants it.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from bettong.edges.redis_store.connection import Client, RedisStore, clock_ns
from bettong.edges.redis_store.lease import LEASE
from bettong.identifiers import PartitionId

# A heartbeat that is late is made up for by the next one; it must not hang on a Redis that is away.
_ATTEMPTS_S = 0.5

# A slot that sent no heartbeat for this long may have lost its task: some four heartbeats.
SILENT_MS = 200

# KEYS: the assignment, this slot, the holders, the refused. ARGV: run, slot, incarnation, ms to live, known epoch,
# prefix of slots, number of partitions held, of partitions wanted; then partitions: held, wanted, revoked. Epochs grow
# within a run: an assignment older than the known one is of a Redis that came back older. Of the refused, a heartbeat
# checks 16 picked by chance: at rest there are none, and when many partitions move at a time it must stay short. What
# the task does hold it acquires again in the same script.
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

# KEYS: the assignment, the refused. ARGV: run, epoch, slots of partitions, stop. A run that is not the newest any more
# writes nothing.
_PUBLISH_ASSIGNMENT = """
local run = redis.call('HGET', KEYS[1], 'run')
if run and run ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'run', ARGV[1], 'epoch', ARGV[2], 'slots', ARGV[3], 'stop', ARGV[4])
redis.call('DEL', KEYS[2])
return 1
"""

# KEYS: a slot. ARGV: incarnation, the longest that a key lives on whose slot is silent. Another task's key, or one
# that has been renewed meanwhile, stays.
_DISMISS_TASK = f"""{LEASE}
local _, left = holder_of(KEYS[1])
if left > tonumber(ARGV[2]) then return 0 end
return release(KEYS[1], ARGV[1])
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task that runs in a slot. `incarnation` grows from each task of a slot to the next, whatever run it is of."""

    run: str
    slot: int
    incarnation: int


@dataclass(frozen=True, slots=True)
class SlotAssignment:
    """Which slot is to hold each partition, as of an epoch (0: nothing is assigned yet), and whether all is to end.

    Each assignment of a run has an epoch of its own, above all before: tasks read no other.
    """

    epoch: int = 0
    slots: Mapping[PartitionId, int] = field(default_factory=dict)
    stop: bool = False


@dataclass(frozen=True, slots=True)
class HeartbeatResponse:
    """`assignment`: a newer one than the task knew, or None. `lost`: another task holds these.

    `redis_ns`: Redis' clock, Unix ns.
    """

    assignment: SlotAssignment | None
    lost: frozenset[PartitionId]
    acquired: frozenset[PartitionId]
    redis_ns: int


@dataclass(frozen=True, slots=True)
class MembershipView:
    """What the driver sees. `epoch`: of the assignment that Redis has; None when it has none of this run.

    `silent`: the tasks of members that sent no heartbeat for SILENT_MS.
    """

    epoch: int | None
    members: frozenset[int]
    holders: Mapping[PartitionId, int]
    silent: Sequence[Task]


class RedisMembership:
    """Of one application. A slot that is silent for `ttl_ms` lives no more. Raises StoreError."""

    def __init__(self, store: RedisStore, *, ttl_ms: int) -> None:
        self._store = store
        self._ttl_ms = ttl_ms
        self._assignment = store.key("resident")
        self._holders = store.key("resident", "holders")
        self._refused = store.key("resident", "refused")

    def begin_run(self, run: str) -> int:
        """A new driver: tasks of earlier runs are superseded, and hold nothing. The time by Redis' clock, in us."""

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
        """Which of these slots live, who holds what, and who is silent: all as of one moment."""
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
            held = {_parsed(partition): holder.partition(b":") for partition, holder in holders.items()}
            return MembershipView(
                int(epoch) if newest == run.encode() else None,
                frozenset(lives),
                {
                    partition: int(slot)
                    for partition, (slot, _, incarnation) in held.items()
                    if lives.get(int(slot)) == incarnation
                },
                [
                    Task(run=run, slot=slot, incarnation=int(incarnation))
                    for slot, incarnation, left_ms in members
                    if incarnation is not None and left_ms <= self._ttl_ms - SILENT_MS
                ],
            )

        return self._store.ask("reading the members", command, attempts_s=_ATTEMPTS_S)

    def dismiss_task(self, task: Task) -> bool:
        """Its slot lives no more, and others may acquire what it holds.

        False for a task that sent a heartbeat meanwhile, or whose slot has another task.

        One that is alive after all is a member again with its next heartbeat.
        """
        arguments = (task.incarnation, self._ttl_ms - SILENT_MS)
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
        """The response; None when the task is superseded: by a newer run, or a newer task of its slot.

        `epoch`: of the assignment that the task knows. `wanted` counts only under the newest assignment.
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
            assignment, frozenset(map(_parsed, lost)), frozenset(map(_parsed, acquired)), clock_ns(time)
        )

    def _slot(self, slot: int | str) -> str:
        return self._store.key("resident", str(slot))


class Holders(NamedTuple):
    """The slot that holds each partition now, whoever the driver is; without those whose slot lives no more.

    `incarnations`: of the task that is at work in each of these slots. Both empty under another schedule.
    """

    slots: dict[PartitionId, int]
    incarnations: dict[int, int]


def read_holders(store: RedisStore, *, attempts_s: float = _ATTEMPTS_S) -> Holders:
    """Who holds what. Raises StoreError."""

    def command(client: Client) -> Holders:
        found = list(filter(None, map(_held, client.hgetall(store.key("resident", "holders")).items())))
        slots = sorted({slot for _, slot, _ in found})
        keys = [store.key("resident", str(slot)) for slot in slots]
        lives = dict(zip(slots, client.mget(keys), strict=True)) if keys else {}
        held = [(partition, slot, task) for partition, slot, task in found if lives[slot] == task]
        return Holders(
            {partition: slot for partition, slot, _ in held},
            {slot: int(task) for _, slot, task in held if task.isdigit()},
        )

    return store.ask("reading who holds what", command, attempts_s=attempts_s)


def _held(entry: tuple[bytes, bytes]) -> tuple[PartitionId, int, bytes] | None:
    """Partition, slot and incarnation of an entry of holders; None for one that is none."""
    slot, _, incarnation = entry[1].partition(b":")
    try:
        return _parsed(entry[0]), int(slot), incarnation
    except ValueError:
        return None


def _parsed(partition: bytes) -> PartitionId:
    return PartitionId.parse(partition.decode())
