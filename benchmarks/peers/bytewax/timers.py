"""Timers by bytewax: `python -m bytewax.run benchmarks.peers.bytewax.timers`.

bytewax notifies by the system's clock. So a key's logic is notified when as much time has passed there as is left until
the timer is due, as bytewax's own clock of event time does; a message that comes with a later time finds it due before.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import bytewax.operators as op
from bytewax.connectors.kafka import KafkaSourceMessage
from bytewax.operators import StatefulLogic

from benchmarks.peers.bytewax.flow import from_topic_to_topic
from benchmarks.peers.events import EVENT, OVERDUE, on_step

_Step = tuple[int, int, int]


class WaitingOrder(StatefulLogic[_Step, bytes, tuple[int, int]]):
    """An order that waits for its approval: its key, when it is due, and when to be notified."""

    def __init__(self, key: int, due_ns: int | None) -> None:
        self._key, self._due_ns = key, due_ns
        self._notify_at: datetime | None = None

    def on_item(self, value: _Step) -> tuple[Iterable[bytes], bool]:
        """One message of a key. Nothing is kept of a key that waits for nothing."""
        self._key, at_ns, kind = value
        self._due_ns, overdue_ns = on_step(at_ns, kind, self._due_ns)
        overdue = () if overdue_ns is None else (OVERDUE.pack(self._key, overdue_ns),)
        if self._due_ns is None:
            return overdue, self.DISCARD
        self._notify_at = datetime.now(UTC) + timedelta(microseconds=(self._due_ns - at_ns) // 1000)
        return overdue, self.RETAIN

    def on_notify(self) -> tuple[Iterable[bytes], bool]:
        """Nobody has approved it."""
        return (OVERDUE.pack(self._key, self._due_ns),), self.DISCARD

    def notify_at(self) -> datetime | None:
        """See StatefulLogic."""
        return self._notify_at

    def snapshot(self) -> tuple[int, int | None]:
        """See StatefulLogic."""
        return self._key, self._due_ns


def keyed(records: list[KafkaSourceMessage]) -> list[tuple[str, _Step]]:
    """A message a record."""
    return [(record.key.decode(), EVENT.unpack(record.value)) for record in records]


flow = from_topic_to_topic(
    "timers",
    keyed,
    lambda steps: op.stateful("wait", steps, lambda kept: WaitingOrder(*(kept or (0, None)))),
)
