"""What the programs of windows share: counts and sums by bytewax's clock of event time."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import bytewax.operators as op
from bytewax.connectors.kafka import KafkaSourceMessage
from bytewax.dataflow import Dataflow
from bytewax.operators import KeyedStream
from bytewax.operators.windowing import EventClock, Windower, fold_window

from benchmarks.peers.bytewax.flow import from_topic_to_topic
from benchmarks.peers.events import COUNT, EVENT, MS_NS

EPOCH = datetime.fromtimestamp(0, UTC)
_Event = tuple[datetime, int]

# A key's time is that of its newest message. By default it also goes on by the system's clock, so that a slow run would
# call messages late; this clock stands still, and windows are closed by messages alone.
_CLOCK = EventClock(
    ts_getter=lambda event: event[0],
    wait_for_system_duration=timedelta(0),
    now_getter=lambda: EPOCH,
    to_system_utc=lambda _: None,
)


def counted(name: str, windower: Windower, end_ms: Callable[[int], int]) -> Dataflow:
    """The flow. `end_ms`: where the window of a number ends."""

    def results(events: KeyedStream[_Event]) -> KeyedStream[bytes]:
        windows = fold_window(
            "count",
            events,
            _CLOCK,
            windower,
            builder=lambda: (0, 0),
            folder=lambda counted, event: (counted[0] + 1, counted[1] + event[1]),
            merger=lambda left, right: (left[0] + right[0], left[1] + right[1]),
            ordered=False,  # a key's messages come in order
        )
        return op.map("pack", windows.down, pack)

    def pack(window: tuple[str, tuple[int, tuple[int, int]]]) -> tuple[str, bytes]:
        key, (number, counts) = window
        return key, COUNT.pack(int(key), end_ms(number) * MS_NS, *counts)

    return from_topic_to_topic(name, keyed, results)


def keyed(records: list[KafkaSourceMessage]) -> list[tuple[str, _Event]]:
    """A message a record: its time and its value."""
    events = []
    for record in records:
        _, at_ns, value = EVENT.unpack(record.value)
        events.append((record.key.decode(), (datetime.fromtimestamp(at_ns / 1e9, UTC), value)))
    return events
