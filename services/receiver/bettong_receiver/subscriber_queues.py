"""Queues and lag of subscribers: by sink, and for the most stalled subscribers. Used on the event loop."""

from collections.abc import Iterable, Mapping, Sequence

from bettong import metrics, queue_metrics
from bettong.identifiers import TopicPartition
from bettong.queued import SubscriberQueue, subscribers_text
from bettong_receiver.room import SLOW_S, ConnectedSubscriber, Room


def note_lags(room: Room, topics: Mapping[str, str], ends: Mapping[TopicPartition, int] | None) -> None:
    """Updates the lag of each subscriber. `topics`: the topic of each sink; `ends`: end offsets, None without Kafka."""
    for subscriber in room.subscribers:
        topic = topics[subscriber.sink]
        sent = {TopicPartition(topic, partition): offset for partition, offset in subscriber.sent.items()}
        subscriber.lag = metrics.lag(ends, sent) if ends is not None else None


def subscriber_values(room: Room, sinks: Iterable[str]) -> dict[str, str | int | float]:
    """Metrics of each sink's subscribers, and of those subscribers that have stalled for longest."""
    rows = [(subscriber, _queue(subscriber, room.stalled_s(subscriber))) for subscriber in room.subscribers]
    found: dict[str, str | int | float] = {
        metrics.SESSIONS.name: len(rows),
        queue_metrics.SUBSCRIBERS.name: subscribers_text(row for _, row in rows),
    }
    for sink in sinks:
        own = [row for _, row in rows if row.sink == sink]
        found |= {f"{name}/{sink}": value for name, value in _of_sink(own).items()}
        found[f"{queue_metrics.SUBSCRIBER_BYTES.name}/{sink}"] = sum(
            subscriber.held for subscriber, row in rows if row.sink == sink
        )
    return found


def _queue(subscriber: ConnectedSubscriber, stalled_s: float) -> SubscriberQueue:
    waiting_bytes = subscriber.sending if subscriber.write_since_s is not None else 0
    return SubscriberQueue(
        subscriber.sink, subscriber.address, round(stalled_s, 3), waiting_bytes, subscriber.lag
    )


def _of_sink(rows: Sequence[SubscriberQueue]) -> dict[str, int | float]:
    lags = [row.lag for row in rows if row.lag is not None]
    values: dict[str, int | float] = {
        queue_metrics.STALLED_SUBSCRIBERS.name: sum(row.stalled_s >= SLOW_S for row in rows),
        queue_metrics.SUBSCRIBER_STALLED_S.name: max((row.stalled_s for row in rows), default=0.0),
    }
    if len(lags) == len(rows):
        values[queue_metrics.SUBSCRIBER_LAG.name] = max(lags, default=0)
    return values
