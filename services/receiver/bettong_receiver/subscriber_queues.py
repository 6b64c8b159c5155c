"""What waits for subscribers: by sink, and by subscriber for those that have it worst. On the event loop."""

from collections.abc import Iterable, Mapping, Sequence

from bettong import metrics, queue_metrics
from bettong.identifiers import TopicPartition
from bettong.queued import SubscriberQueue, subscribers_text
from bettong_receiver.room import SLOW_S, Guest, Room


def note_lags(room: Room, topics: Mapping[str, str], ends: Mapping[TopicPartition, int] | None) -> None:
    """How far each subscriber is behind. `topics`: of each sink; `ends`: of their logs, None where Kafka is away."""
    for guest in room.guests:
        topic = topics[guest.sink]
        sent = {TopicPartition(topic, partition): offset for partition, offset in guest.sent.items()}
        guest.lag = metrics.lag(ends, sent) if ends is not None else None


def subscriber_values(room: Room, sinks: Iterable[str]) -> dict[str, str | int | float]:
    """Of each sink, and of those subscribers that have stalled for longest."""
    rows = [(guest, _queue(guest, room.stood_s(guest))) for guest in room.guests]
    found: dict[str, str | int | float] = {
        metrics.SESSIONS.name: len(rows),
        queue_metrics.SUBSCRIBERS.name: subscribers_text(row for _, row in rows),
    }
    for sink in sinks:
        own = [row for _, row in rows if row.sink == sink]
        found |= {f"{name}/{sink}": value for name, value in _of_sink(own).items()}
        found[f"{queue_metrics.SUBSCRIBER_BYTES.name}/{sink}"] = sum(
            guest.held for guest, row in rows if row.sink == sink
        )
    return found


def _queue(guest: Guest, stood_s: float) -> SubscriberQueue:
    waiting_bytes = guest.sending if guest.since_s is not None else 0
    return SubscriberQueue(guest.sink, guest.address, round(stood_s, 3), waiting_bytes, guest.lag)


def _of_sink(rows: Sequence[SubscriberQueue]) -> dict[str, int | float]:
    lags = [row.lag for row in rows if row.lag is not None]
    values: dict[str, int | float] = {
        queue_metrics.STALLED_SUBSCRIBERS.name: sum(row.stalled_s >= SLOW_S for row in rows),
        queue_metrics.SUBSCRIBER_STALLED_S.name: max((row.stalled_s for row in rows), default=0.0),
    }
    if len(lags) == len(rows):
        values[queue_metrics.SUBSCRIBER_LAG.name] = max(lags, default=0)
    return values
