"""The thread that tells the store that a slot lives, and hears which partitions it is to hold.

It never holds up the loop: the loop reads the last orders, and says what it has let go. While the store is away the
orders stay as they were: the slot keeps what it has, and others, who cannot take anything, keep what they have.
"""

import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self

from bettong.edges.redis_store.membership import Deal, Heard, RedisMembership, Task
from bettong.errors import StoreError
from bettong.logs import Logger
from bettong_processor.resident.dealing import Place

# Between two beats: a change of the deal is heard of this late at most.
BEAT_S = 0.05
# While something is to be taken that another slot still holds.
_EAGER_BEAT_S = 0.005
_PAUSE_S = 0.5
_STOP_WAIT_S = 5.0


@dataclass(frozen=True, slots=True)
class Orders:
    """What a loop is to do. `held`: granted, and not lost; `dealt`: to be held. All else is to be let go.

    `superseded`: another task has taken this one's place, it must end without another word.
    """

    held: frozenset[Place] = frozenset()
    dealt: frozenset[Place] = frozenset()
    stop: bool = False
    superseded: bool = False


class Attendance:
    """A context manager: the thread runs while it is entered."""

    def __init__(self, membership: RedisMembership, task: Task, log: Logger) -> None:
        self._membership = membership
        self._task = task
        self._log = log
        self._changed = threading.Condition()
        self._orders = Orders()
        self._deal = Deal(epoch=-1)
        self._let_go: set[Place] = set()
        self._hurry = False
        self._ended = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="attendance")
        self._attending: Future[None] = Future()

    @property
    def orders(self) -> Orders:
        """The newest. Never blocks. Raises what has ended the thread: a slot that hears nothing more must not go on."""
        if self._attending.done():
            self._attending.result()
        return self._orders

    def let_go(self, place: Place) -> None:
        """The loop does not hold this any more; others may take it. Never blocks for long."""
        with self._changed:
            self._let_go.add(place)
            self._ordered(held=self._orders.held - {place})
            self._hurry = True
            self._changed.notify_all()

    def wait(self, wait_s: float) -> None:
        """Blocks until orders change, at most `wait_s`."""
        with self._changed:
            before = self._orders
            self._changed.wait_for(lambda: self._orders is not before, wait_s)

    def __enter__(self) -> Self:
        self._attending = self._thread.submit(self._run)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        self._thread.shutdown(wait=False)
        wait([self._attending], _STOP_WAIT_S)

    def _run(self) -> None:
        while True:
            with self._changed:
                let_go, held = set(self._let_go), self._orders.held
                self._hurry = False
                if self._ended and not let_go:
                    return
                wanted = frozenset() if self._orders.stop else self._orders.dealt - held - let_go
            pause_s = self._beat(held, wanted, let_go)
            with self._changed:
                if self._orders.superseded or (self._ended and pause_s >= _PAUSE_S):
                    return
                self._changed.wait_for(lambda: self._ended or self._hurry, pause_s)

    def _beat(self, held: frozenset[Place], wanted: frozenset[Place], let_go: set[Place]) -> float:
        """One beat; seconds until the next."""
        try:
            heard = self._membership.beat(
                self._task, self._deal.epoch, held=held, wanted=wanted, let_go=let_go
            )
        except StoreError as error:
            self._log.warning("the slot cannot tell that it lives; it keeps what it holds", fault=str(error))
            return _PAUSE_S
        with self._changed:
            if heard is None:
                self._ordered(superseded=True)
            else:
                self._let_go -= let_go
                self._hear(heard)
            self._changed.notify_all()
            waits = self._orders.dealt - self._orders.held and not self._orders.stop
        return _EAGER_BEAT_S if waits else BEAT_S

    def _hear(self, heard: Heard) -> None:
        if heard.deal is not None:
            self._deal = heard.deal
        mine = frozenset(place for place, slot in self._deal.slots.items() if slot == self._task.slot)
        # What the loop let go while the beat was under way is not given back to it by the beat's answer.
        held = (self._orders.held - heard.lost) | (heard.granted - self._let_go)
        self._ordered(held=held, dealt=mine, stop=self._deal.stop)

    def _ordered(self, **changes: Any) -> None:
        after = replace(self._orders, **changes)
        if after != self._orders:
            self._orders = after
