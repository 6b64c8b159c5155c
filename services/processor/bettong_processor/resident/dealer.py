"""Looks which slots live, and publishes the deal among them."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from bettong.edges.redis_store.membership import Deal, RedisMembership, Task
from bettong.errors import StoreError, StoreUnavailableError, SupersededError
from bettong.logs import Logger
from bettong_processor.resident.dealing import Place, dealt

# At its start a run waits this long for all slots, so that the first one is not dealt everything.
GATHER_S = 2.0
# A look that took this long met a Redis that stood still: beats that wait for it, too, have not been counted yet.
_SLOW_S = 0.5
# In one that took this long all slots may look silent, and each would be asked for in Spark: the next look tells.
_STALL_S = 0.1
# Places move within a beat, an increment and a restore. One that nobody holds for this long is told of.
_UNHELD_S = 3.0
_NAMED_MAX = 3


class Dealer:
    """Used by one thread. `settle_s`: after the store was away, slots are taken for dead only after this long.

    Away is also a store that stood still, or came back without the newest deal: empty, or as it was some time ago.

    `is_vacated` tells whether a task that is silent has ended for certain, and none runs in its place: its slot need
    not be waited for. `clock` is monotonic, in seconds.
    """

    def __init__(
        self,
        membership: RedisMembership,
        run: str,
        places: Sequence[Place],
        *,
        settle_s: float,
        is_vacated: Callable[[Task], bool],
        clock: Callable[[], float],
        log: Logger,
    ) -> None:
        self._membership = membership
        self._run = run
        self._places = places
        self._settle_s = settle_s
        self._is_vacated = is_vacated
        self._clock = clock
        self._log = log
        self._deal = Deal()
        self._members: frozenset[int] = frozenset()
        self._gathered_s: float | None = None
        self._settled_s = float("-inf")
        self._unheld_s: dict[Place, float] = {}
        self._waits_for = "no task has started yet"

    def waits_for(self) -> str:
        """What keeps partitions from being folded; "" when each has a holder, or had one a moment ago."""
        return self._waits_for

    def look(self, slots: int) -> None:
        """Looks at the slots 0 to `slots` - 1, and deals anew when they have changed.

        A store that is away changes nothing. Raises StoreError when it refuses, SupersededError when a newer run has
        begun, and what `is_vacated` raises.
        """
        begun_s = self._clock()
        try:
            seen = self._membership.look(self._run, range(slots))
        except StoreUnavailableError:
            self._settled_s = self._clock() + self._settle_s
            return
        now_s = self._clock()
        forgotten = seen.epoch != self._deal.epoch
        if forgotten or now_s - begun_s >= _SLOW_S:
            self._settled_s = now_s + self._settle_s
        if forgotten:
            # The slots still hold what they held, and say so within a beat.
            self._publish(self._deal.slots)
        dismissed = self._dismissed(seen.silent) if now_s - begun_s < _STALL_S else set()
        members = seen.members
        if now_s < self._settled_s:
            members |= self._members
        members -= dismissed
        if self._gathers(members, slots):
            return
        if members and members != self._members:
            # Who holds a place now is the first to keep it: it may still hold what the last deal took from it.
            wanted = dealt(self._places, members, {**self._deal.slots, **seen.holders})
            if wanted != self._deal.slots:
                self._publish(wanted)
            self._members = members
            self._log.info("partitions are dealt", members=len(members), epoch=self._deal.epoch)
        self._unheld_s = {
            place: self._unheld_s.get(place, now_s) for place in self._places if place not in seen.holders
        }
        if members:
            patience_s = 0.0 if self._waits_for else _UNHELD_S
            self._waits_for = _unheld(
                [place for place, since_s in self._unheld_s.items() if now_s - since_s >= patience_s]
            )
        else:
            self._waits_for = "no slot lives: no executor has room, or its tasks fail (see the log)"

    def stop(self) -> bool:
        """Tells all slots to drain and end; False when the store is away, so that they do not hear it. Never raises."""
        try:
            told = self._publish(self._deal.slots, stop=True)
        except StoreError:
            told = False
        if not told:
            self._log.warning("the tasks cannot be told to stop; what they have not saved is folded again")
        return told

    def _dismissed(self, silent: Iterable[Task]) -> set[int]:
        """Slots whose tasks have ended: they live no more, at once instead of when their time is over."""
        gone = set()
        for task in silent:
            try:
                if self._is_vacated(task) and self._membership.dismiss(task):
                    gone.add(task.slot)
                    self._log.warning("a slot has lost its task", slot=task.slot)
            except StoreUnavailableError:
                break  # the next look meets it too
        return gone

    def _gathers(self, members: frozenset[int], slots: int) -> bool:
        """Whether to wait for the rest of the slots before the first deal."""
        if self._members or not members:
            return False
        if self._gathered_s is None:
            self._gathered_s = self._clock() + GATHER_S
        return len(members) < slots and self._clock() < self._gathered_s

    def _publish(self, slots: Mapping[Place, int], *, stop: bool = False) -> bool:
        """Whether the store has said that it is written. If not, the next look tells, and it is published again.

        Each attempt has an epoch of its own: one that was not answered may have been carried out, and heard of.
        """
        self._deal = Deal(self._deal.epoch + 1, slots, stop)
        try:
            if not self._membership.publish(self._run, self._deal):
                raise SupersededError("another processor of this application has begun")
        except StoreUnavailableError:
            return False
        return True


def _unheld(places: Sequence[Place]) -> str:
    """In a line for people; "" for none."""
    if not places:
        return ""
    more = f" and {len(places) - _NAMED_MAX} more" if len(places) > _NAMED_MAX else ""
    return f"no slot holds {', '.join(places[:_NAMED_MAX])}{more}"
