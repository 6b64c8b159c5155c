"""Which slot of a resident processor holds which partition: members, the deal, and who holds what now.

| key                                     | type   | holds                                                       |
| --------------------------------------- | ------ | ----------------------------------------------------------- |
| `bettong:{application}:resident`         | hash   | run, epoch, deal (JSON: place -> slot), stop; the driver's  |
| `bettong:{application}:resident:{slot}`  | string | the slot's task by its incarnation; goes when it is silent, |
|                                         |        | at once when the driver knows that the task has ended       |
| `bettong:{application}:resident:holders` | hash   | place -> `{slot}:{incarnation}` that holds it               |
| `bettong:{application}:resident:refused` | set    | places that a task asked for while another one held them    |

A place is `{stage}/{partition}`. A task tells by one script, a *beat*, that it lives, what it holds and what it lets
go, and is told the deal, what it has got and what it has lost. A place goes to whom the deal names, and only once its
holder has let it go or lives no more. This keeps two tasks from doing one work; that results count once is the
delivery rule's doing, so a Redis that forgot all this, or comes back as it was some time ago, costs nothing but work.

Redis may take a task for a holder that does not know it: the answer that granted the place was lost, or Redis came
back older. So a task lets go what another one was refused for its sake, unless it says in the same beat that it holds
or wants it.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from bettong.edges.redis_store.connection import Client, RedisStore

# A beat that is late is made up for by the next one; a beat must not hang on a Redis that is away.
_ATTEMPTS_S = 0.5

# A slot that has not beaten for this long may have lost its task: some four beats.
SILENT_MS = 200

# KEYS: the deal, this slot, the holders, the refused. ARGV: run, slot, incarnation, ms to live, known epoch, prefix of
# slots, number of places held, of places wanted; then places: held, wanted, let go. Epochs grow within a run: a deal
# that is older than the known one is a thing of the past, of a Redis that came back older. Of the refused, a beat looks
# at 16 picked by chance: at rest there are none, and when many places move at a time a beat must stay short. What the
# task does hold it takes again in the same breath.
_BEAT = """
local deal = redis.call('HMGET', KEYS[1], 'run', 'epoch', 'deal', 'stop')
if deal[1] and deal[1] ~= ARGV[1] then return {'superseded'} end
local newest = redis.call('GET', KEYS[2])
if newest and tonumber(newest) > tonumber(ARGV[3]) then return {'superseded'} end
redis.call('SET', KEYS[2], ARGV[3], 'PX', ARGV[4])
local me = ARGV[2] .. ':' .. ARGV[3]
local function leaves(place)
  if redis.call('HGET', KEYS[3], place) == me then redis.call('HDEL', KEYS[3], place) end
end
local function takes(place)
  local holder = redis.call('HGET', KEYS[3], place)
  if holder == me then return true end
  if holder then
    local slot, incarnation = string.match(holder, '(%d+):(%d+)')
    if slot ~= ARGV[2] and redis.call('GET', ARGV[6] .. slot) == incarnation then
      redis.call('SADD', KEYS[4], place)
      return false
    end
  end
  redis.call('HSET', KEYS[3], place, me)
  redis.call('SREM', KEYS[4], place)
  return true
end
local held, wanted, lost, granted = 8 + ARGV[7], 8 + ARGV[7] + ARGV[8], {}, {}
for place = wanted + 1, #ARGV do leaves(ARGV[place]) end
for _, place in ipairs(redis.call('SRANDMEMBER', KEYS[4], 16)) do leaves(place) end
for place = 9, held do
  if not takes(ARGV[place]) then lost[#lost + 1] = ARGV[place] end
end
local current = deal[2] == ARGV[5]
for place = held + 1, wanted do
  if current and takes(ARGV[place]) then granted[#granted + 1] = ARGV[place] end
end
local newer = deal[2] and tonumber(deal[2]) > tonumber(ARGV[5])
return {'heard', deal[2] or '', (newer and deal[3]) or '', deal[4] or '', lost, granted}
"""

# KEYS: the deal, the refused. ARGV: run, epoch, deal, stop. A run that is not the newest any more writes nothing.
_PUBLISH = """
local run = redis.call('HGET', KEYS[1], 'run')
if run and run ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'run', ARGV[1], 'epoch', ARGV[2], 'deal', ARGV[3], 'stop', ARGV[4])
redis.call('DEL', KEYS[2])
return 1
"""

# KEYS: a slot. ARGV: incarnation, the longest that a key lives on whose slot is silent. Another task's key, or one
# that has been renewed meanwhile, stays.
_DISMISS = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] or redis.call('PTTL', KEYS[1]) > tonumber(ARGV[2]) then return 0 end
return redis.call('DEL', KEYS[1])
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task that runs in a slot. `incarnation` grows from each task of a slot to the next, whatever run it is of."""

    run: str
    slot: int
    incarnation: int


@dataclass(frozen=True, slots=True)
class Deal:
    """Which slot is to hold each place, as of an epoch (0: nothing is dealt yet), and whether all is to end.

    Each deal of a run has an epoch of its own, above all before: tasks hear of nothing else.
    """

    epoch: int = 0
    slots: Mapping[str, int] = field(default_factory=dict)
    stop: bool = False


@dataclass(frozen=True, slots=True)
class Heard:
    """The answer to a beat. `deal`: a newer one than the task knew, or None. `lost`: another task holds these."""

    deal: Deal | None
    lost: frozenset[str]
    granted: frozenset[str]


@dataclass(frozen=True, slots=True)
class Look:
    """What the driver sees. `epoch`: of the deal that Redis has; None when it has none of this run.

    `silent`: the tasks of members that have not beaten for SILENT_MS.
    """

    epoch: int | None
    members: frozenset[int]
    holders: Mapping[str, int]
    silent: Sequence[Task]


class RedisMembership:
    """Of one application. A slot that is silent for `ttl_ms` lives no more. Raises StoreError."""

    def __init__(self, store: RedisStore, *, ttl_ms: int) -> None:
        self._store = store
        self._ttl_ms = ttl_ms
        self._deal = store.key("resident")
        self._holders = store.key("resident", "holders")
        self._refused = store.key("resident", "refused")

    def begin(self, run: str) -> int:
        """A new driver: tasks of earlier runs are superseded, and hold nothing. The time by Redis' clock, in us."""

        def command(client: Client) -> int:
            with client.pipeline(transaction=True) as together:
                together.delete(self._deal, self._holders, self._refused)
                together.hset(self._deal, mapping={"run": run, "epoch": 0, "deal": "{}", "stop": 0})
                together.time()
                *_, (seconds, micros) = together.execute()
            return int(seconds) * 1_000_000 + int(micros)

        return self._store.ask("beginning a run", command)

    def publish(self, run: str, deal: Deal) -> bool:
        """Writes the deal; False when a newer run has begun."""
        arguments = (run, deal.epoch, json.dumps(dict(deal.slots)), int(deal.stop))
        done = self._store.ask(
            "publishing the deal",
            lambda client: client.eval(_PUBLISH, 2, self._deal, self._refused, *arguments),
            attempts_s=_ATTEMPTS_S,
        )
        return bool(done)

    def look(self, run: str, slots: Iterable[int]) -> Look:
        """Which of these slots live, who holds what, and who is silent: all as of one moment."""
        numbers = list(slots)

        def command(client: Client) -> Look:
            with client.pipeline(transaction=True) as together:
                together.hmget(self._deal, "run", "epoch")
                together.hgetall(self._holders)
                for slot in numbers:
                    together.get(self._slot(slot))
                    together.pttl(self._slot(slot))
                (newest, epoch), holders, *found = together.execute()
            beaten = list(zip(numbers, found[::2], found[1::2], strict=True))
            lives = {slot: incarnation for slot, incarnation, _ in beaten if incarnation is not None}
            held = {place.decode(): holder.partition(b":") for place, holder in holders.items()}
            return Look(
                int(epoch) if newest == run.encode() else None,
                frozenset(lives),
                {
                    place: int(slot)
                    for place, (slot, _, incarnation) in held.items()
                    if lives.get(int(slot)) == incarnation
                },
                [
                    Task(run=run, slot=slot, incarnation=int(incarnation))
                    for slot, incarnation, left_ms in beaten
                    if incarnation is not None and left_ms <= self._ttl_ms - SILENT_MS
                ],
            )

        return self._store.ask("looking at members", command, attempts_s=_ATTEMPTS_S)

    def dismiss(self, task: Task) -> bool:
        """Its slot lives no more, and what it holds may be taken; False when it has beaten meanwhile, or is another's.

        One that is alive after all is a member again by its next beat.
        """
        arguments = (task.incarnation, self._ttl_ms - SILENT_MS)
        done = self._store.ask(
            "dismissing a task",
            lambda client: client.eval(_DISMISS, 1, self._slot(task.slot), *arguments),
            attempts_s=_ATTEMPTS_S,
        )
        return bool(done)

    def beat(
        self,
        task: Task,
        epoch: int,
        *,
        held: Iterable[str] = (),
        wanted: Iterable[str] = (),
        let_go: Iterable[str] = (),
    ) -> Heard | None:
        """Tells and asks; None when the task is superseded: by a newer run, or a newer task of its slot.

        `epoch`: of the deal that the task knows. `wanted` counts only under the newest deal.
        """
        have, want, leave = list(held), list(wanted), list(let_go)
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
        keys = (self._deal, self._slot(task.slot), self._holders, self._refused)
        answer = self._store.ask(
            "telling that a slot lives",
            lambda client: client.eval(_BEAT, len(keys), *keys, *head, *have, *want, *leave),
            attempts_s=_ATTEMPTS_S,
        )
        if answer[0] == b"superseded":
            return None
        _, newest, slots, stop, lost, granted = answer
        deal = Deal(int(newest), json.loads(slots), stop == b"1") if slots else None
        return Heard(deal, _names(lost), _names(granted))

    def _slot(self, slot: int | str) -> str:
        return self._store.key("resident", str(slot))


def _names(places: Iterable[bytes]) -> frozenset[str]:
    return frozenset(place.decode() for place in places)
