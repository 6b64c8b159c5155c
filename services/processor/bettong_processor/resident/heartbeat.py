"""The thread that sends a slot's heartbeats to the store, and receives which partitions the slot is to hold.

It never blocks the loop, which reads the newest desired assignment and reports the partitions it has revoked. While the
store is unreachable the desired assignment does not change: each slot keeps the partitions it holds, and none can
acquire others.
"""

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self

from bettong.clocks import CarriedClock
from bettong.edges.redis_store.membership import HeartbeatResponse, RedisMembership, SlotAssignment, Task
from bettong.errors import StoreError
from bettong.identifiers import PartitionId
from bettong.logs import Logger

# Between two heartbeats, and so the longest delay until a slot receives a new assignment.
_INTERVAL_S = 0.05
# While the slot is at rest; well below LOOK_UP_MS, so that the driver does not ask Spark about its task.
_REST_INTERVAL_S = 0.15
# While a partition is to be acquired that another slot still holds; and while a new task waits for its partitions: they
# pause from when others revoke them until it knows that it is to hold them. For so long at most after the slot got more
# partitions or started: a slot that does not let go of one must not cost Redis 200 scripts a second.
_EAGER_INTERVAL_S = 0.005
_EAGER_S_MAX = 3.0
_PAUSE_S = 0.5
_STOP_WAIT_S = 5.0


@dataclass(frozen=True, slots=True)
class DesiredAssignment:
    """What a loop is to do. `held`: acquired and not lost; `assigned`: to be held. Others are to be revoked.

    `superseded`: another task runs in this one's slot; this one must end and write nothing more.
    """

    held: frozenset[PartitionId] = frozenset()
    assigned: frozenset[PartitionId] = frozenset()
    stop: bool = False
    superseded: bool = False


class Heartbeat:
    """A context manager: the thread runs while it is entered."""

    def __init__(self, membership: RedisMembership, task: Task, log: Logger) -> None:
        self._membership = membership
        self._task = task
        self._log = log
        self._changed = threading.Condition()
        self._desired = DesiredAssignment()
        self._assignment = SlotAssignment(epoch=-1)
        self._revoked: set[PartitionId] = set()
        self._hurry = False
        self._at_rest = False
        self._ended = False
        self._eager_until_s = 0.0
        # Redis' time in the last response, and the monotonic time of this machine when it arrived.
        self._redis_clock = CarriedClock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="heartbeat")
        self._sending: Future[None] = Future()

    @property
    def desired(self) -> DesiredAssignment:
        """The newest assignment. Never blocks. Raises the error that ended the thread: without it the slot must end."""
        if self._sending.done():
            self._sending.result()
        return self._desired

    @property
    def redis_ns(self) -> int:
        """Redis' clock now, Unix ns: the time of the last response plus the time since. 0 before the first response."""
        return self._redis_clock.now_ns or 0

    def report_revoked(self, partition: PartitionId) -> None:
        """Reports that the loop has released a partition: another slot may acquire it. Never blocks for long."""
        with self._changed:
            self._revoked.add(partition)
            self._change_desired(held=self._desired.held - {partition})
            self._hurry = True
            self._changed.notify_all()

    def rest(self, *, at_rest: bool) -> None:
        """Sets whether the loop is at rest; the end of a rest triggers a heartbeat at once. Never blocks for long."""
        if at_rest == self._at_rest:
            return
        with self._changed:
            self._at_rest = at_rest
            self._hurry = self._hurry or not at_rest
            self._changed.notify_all()

    def await_change(self, wait_s: float) -> None:
        """Blocks until the desired assignment changes, for at most `wait_s`."""
        with self._changed:
            before = self._desired
            self._changed.wait_for(lambda: self._desired is not before, wait_s)

    def __enter__(self) -> Self:
        self._eager_until_s = time.monotonic() + _EAGER_S_MAX
        self._sending = self._thread.submit(self._send_heartbeats)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        self._thread.shutdown(wait=False)
        wait([self._sending], _STOP_WAIT_S)

    def _send_heartbeats(self) -> None:
        while True:
            with self._changed:
                revoked, held = set(self._revoked), self._desired.held
                self._hurry = False
                if self._ended and not revoked:
                    return
                wanted = frozenset() if self._desired.stop else self._desired.assigned - held - revoked
            pause_s = self._send_heartbeat(held, wanted, revoked)
            with self._changed:
                if self._desired.superseded or (self._ended and pause_s >= _PAUSE_S):
                    return
                self._changed.wait_for(lambda: self._ended or self._hurry, pause_s)

    def _send_heartbeat(
        self, held: frozenset[PartitionId], wanted: frozenset[PartitionId], revoked: set[PartitionId]
    ) -> float:
        """Sends one heartbeat; returns the pause until the next, in seconds."""
        try:
            response = self._membership.send_heartbeat(
                self._task, self._assignment.epoch, held=held, wanted=wanted, revoked=revoked
            )
        except StoreError as error:
            self._log.warning("heartbeat not sent; the slot keeps the partitions it holds", fault=str(error))
            return _PAUSE_S
        with self._changed:
            if response is None:
                self._change_desired(superseded=True)
            else:
                self._redis_clock.hear(response.redis_ns)
                self._revoked -= revoked
                self._apply_response(response)
            self._changed.notify_all()
            assigned = self._desired.assigned
            waits = not assigned or bool(assigned - self._desired.held)
            if waits and not self._desired.stop and time.monotonic() < self._eager_until_s:
                return _EAGER_INTERVAL_S
            return _REST_INTERVAL_S if self._at_rest else _INTERVAL_S

    def _apply_response(self, response: HeartbeatResponse) -> None:
        if response.assignment is not None:
            self._assignment = response.assignment
        own = frozenset(each for each, slot in self._assignment.slots.items() if slot == self._task.slot)
        # Partitions that the loop revoked while the heartbeat was in flight are not held again through the response.
        held = (self._desired.held - response.lost) | (response.acquired - self._revoked)
        if own - self._desired.assigned:
            self._eager_until_s = time.monotonic() + _EAGER_S_MAX
        self._change_desired(held=held, assigned=own, stop=self._assignment.stop)

    def _change_desired(self, **changes: Any) -> None:
        after = replace(self._desired, **changes)
        if after != self._desired:
            self._desired = after
