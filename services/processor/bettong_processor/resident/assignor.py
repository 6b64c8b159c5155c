"""Checks which slots are alive, and publishes the assignment of partitions to them."""

from collections.abc import Callable, Mapping, Sequence

from bettong.edges.redis_store.membership import RedisMembership, SlotAssignment, Task
from bettong.errors import StoreError, StoreUnavailableError, SupersededError
from bettong.identifiers import PartitionId
from bettong.listing import first_named
from bettong.logs import Logger
from bettong_processor.resident.assignment import assign_partitions

# A starting run waits this long for all slots, so that the first one does not get every partition.
GATHER_S = 2.0
# A check that took this long shows that Redis stalled, so that heartbeats may be delayed, too.
_SLOW_S = 0.5
# After a check that took this long all slots may look silent. Spark is not asked about each: the next check decides.
_STALL_S = 0.1
# How long slots are waited for beyond their TTL after one was given up that was alive; doubled each time that happens.
_PATIENCE_S_MIN, _PATIENCE_S_MAX = 4.0, 64.0
# So long after the last time it is over.
_PATIENT_S = 600.0
# A partition moves within a heartbeat, an increment and a restore. One without a holder for this long is reported.
_UNHELD_S = 3.0
_NAMED_MAX = 3


class Assignor:
    """Used by one thread. `grace_s`: after an outage of the store, no slot counts as dead for this long.

    An outage is also a store that stalled, or came back without the newest assignment: empty, or with an older one.

    `has_ended` returns whether a task that has sent no heartbeat for some ms has certainly ended: then its TTL need not
    be awaited. `clock` is monotonic, in seconds.
    """

    def __init__(
        self,
        membership: RedisMembership,
        run: str,
        partitions: Sequence[PartitionId],
        *,
        grace_s: float,
        has_ended: Callable[[Task, int], bool],
        clock: Callable[[], float],
        log: Logger,
    ) -> None:
        self._membership = membership
        self._run = run
        self._partitions = partitions
        self._grace_s = grace_s
        self._has_ended = has_ended
        self._clock = clock
        self._log = log
        self._assignment = SlotAssignment()
        self._members: frozenset[int] = frozenset()
        self._gathered_s: float | None = None
        self._grace_until_s = float("-inf")
        # By slot: its last task, and when it was last seen alive; and the task that was given up when its TTL ended.
        self._seen: dict[int, tuple[int, float]] = {}
        self._given_up: dict[int, int] = {}
        self._patience_s, self._patient_until_s = 0.0, float("-inf")
        self._unheld_since_s: dict[PartitionId, float] = {}
        self._waits_for = "no task has started yet"

    def waits_for(self) -> str:
        """What keeps partitions from being folded; "" if each has a holder, or had one a moment ago."""
        return self._waits_for

    def update_assignment(self, slots: int) -> None:
        """Checks the slots 0 to `slots` - 1, and reassigns the partitions when the members have changed.

        Changes nothing while the store is unreachable. Raises StoreError when it refuses, SupersededError when a newer
        run has begun, and the errors of `has_ended`.
        """
        begun_s = self._clock()
        try:
            seen = self._membership.read_members(self._run, range(slots))
        except StoreUnavailableError:
            self._grace_until_s = self._clock() + self._grace_s
            return
        now_s = self._clock()
        forgotten = seen.epoch != self._assignment.epoch
        if forgotten or now_s - begun_s >= _SLOW_S:
            self._grace_until_s = now_s + self._grace_s
        if forgotten:
            # The slots still hold their partitions, and their next heartbeats report them.
            self._publish(self._assignment.slots)
        dismissed = self._dismiss_ended(seen.silent) if now_s - begun_s < _STALL_S else set()
        members = seen.members | self._await_slow(seen.tasks, now_s)
        if now_s < self._grace_until_s:
            members |= self._members
        members -= dismissed
        if self._is_gathering(members, slots):
            return
        if members and members != self._members:
            # The current holder of a partition is preferred, even if the last assignment named another slot.
            wanted = assign_partitions(self._partitions, members, {**self._assignment.slots, **seen.holders})
            if wanted != self._assignment.slots:
                self._publish(wanted)
            self._given_up |= {slot: self._seen[slot][0] for slot in self._members - members - dismissed}
            self._members = members
            self._log.info("partitions are assigned", members=len(members), epoch=self._assignment.epoch)
        self._unheld_since_s = {
            each: self._unheld_since_s.get(each, now_s)
            for each in self._partitions
            if each not in seen.holders
        }
        if members:
            patience_s = 0.0 if self._waits_for else _UNHELD_S
            self._waits_for = _unheld_text(
                [each for each, since_s in self._unheld_since_s.items() if now_s - since_s >= patience_s]
            )
        else:
            self._waits_for = "no slot lives: no executor has room, or its tasks fail (see the log)"

    def _await_slow(self, tasks: Mapping[int, int], now_s: float) -> set[int]:
        """Members without a heartbeat for their TTL that are waited for, as tasks were slow before."""
        for slot, incarnation in tasks.items():
            self._seen[slot] = incarnation, now_s
            if self._given_up.pop(slot, None) == incarnation:
                before_s = self._patience_s if now_s < self._patient_until_s else 0.0
                self._patience_s = min(max(2 * before_s, _PATIENCE_S_MIN), _PATIENCE_S_MAX)
                self._patient_until_s = now_s + _PATIENT_S
                self._log.warning(
                    "a slot that was given up was only slow: slots are waited for longer from now on. A message that"
                    " takes seconds in a call of C does that: see BETTONG_MESSAGE_MS_MAX",
                    slot=slot,
                    patience_s=self._patience_s,
                )
        if now_s >= self._patient_until_s:
            return set()
        return {
            slot for slot in self._members - tasks.keys() if now_s - self._seen[slot][1] < self._patience_s
        }

    def stop_slots(self) -> bool:
        """Asks all slots to drain and end; False if that could not be published. Never raises."""
        try:
            published = self._publish(self._assignment.slots, stop=True)
        except StoreError:
            published = False
        if not published:
            self._log.warning("the tasks cannot be told to stop; what they have not saved is folded again")
        return published

    def _dismiss_ended(self, silent: Mapping[Task, int]) -> set[int]:
        """Removes slots whose tasks have ended from the members, before their TTL expires; returns them."""
        gone = set()
        for task, silent_ms in silent.items():
            try:
                if self._has_ended(task, silent_ms) and self._membership.dismiss_task(task):
                    gone.add(task.slot)
                    self._log.warning("a slot has lost its task", slot=task.slot)
            except StoreUnavailableError:
                break  # the next check meets it too
        return gone

    def _is_gathering(self, members: frozenset[int], slots: int) -> bool:
        """Whether to wait for the rest of the slots before the first assignment."""
        if self._members or not members:
            return False
        if self._gathered_s is None:
            self._gathered_s = self._clock() + GATHER_S
        return len(members) < slots and self._clock() < self._gathered_s

    def _publish(self, slots: Mapping[PartitionId, int], *, stop: bool = False) -> bool:
        """Whether the store has acknowledged the assignment. If not, the next check sees that, and publishes it again.

        Each attempt has its own epoch: a request without a response may have been executed, and read by slots.
        """
        self._assignment = SlotAssignment(self._assignment.epoch + 1, slots, stop)
        try:
            if not self._membership.publish_assignment(self._run, self._assignment):
                raise SupersededError("another processor of this application has begun")
        except StoreUnavailableError:
            return False
        return True


def _unheld_text(partitions: Sequence[PartitionId]) -> str:
    """One line for people; "" for no partitions."""
    if not partitions:
        return ""
    return f"no slot holds {first_named(partitions, _NAMED_MAX)}"
