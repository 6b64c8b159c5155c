"""Metrics of subscribers' queues, by sink and by subscriber."""

import asyncio

from bettong import metrics, queue_metrics
from bettong.identifiers import TopicPartition
from bettong.queued import SubscriberQueue, subscribers_in
from bettong_receiver.room import ConnectedSubscriber, Room
from bettong_receiver.subscriber_queues import note_lags, subscriber_values

TOPICS = {"raw": "app.sink.raw", "sums": "app.sink.sums"}
ENDS = {TopicPartition("app.sink.raw", partition): 100 for partition in range(2)}


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def entered(room: Room, address: str, held: int, sent: dict[int, int]) -> ConnectedSubscriber:
    task = asyncio.current_task()
    assert task is not None
    subscriber = room.add(task, "raw", address)
    subscriber.held, subscriber.sent = held, sent
    return subscriber


def test_a_stalled_subscriber_is_counted_and_listed_first() -> None:
    async def work() -> None:
        room = Room(readers_max=9, bytes_max=1000, stall_s=30, clock_s=(clock := Clock()))
        reading = entered(room, "ipv4:10.0.0.1:5", 200, {0: 100, 1: 99})
        stalled = entered(room, "ipv4:10.0.0.1:6", 300, {0: 40, 1: 100})
        stalled.sending = reading.sending = 70
        room.write_begun(reading)
        room.write_ended(reading)
        room.write_begun(stalled)
        clock.now_s += 2.5
        note_lags(room, TOPICS, ENDS)
        found = subscriber_values(room, TOPICS)
        assert subscribers_in(str(found.pop(queue_metrics.SUBSCRIBERS.name))) == [
            SubscriberQueue("raw", "ipv4:10.0.0.1:6", 2.5, 70, 60),
            SubscriberQueue("raw", "ipv4:10.0.0.1:5", 0.0, 0, 1),
        ]
        assert found == {
            metrics.SESSIONS.name: 2,
            "stalled_subscribers/raw": 1,
            "subscriber_stalled_s/raw": 2.5,
            "subscriber_bytes/raw": 500,
            "subscriber_lag/raw": 60,
            "stalled_subscribers/sums": 0,
            "subscriber_stalled_s/sums": 0.0,
            "subscriber_bytes/sums": 0,
            "subscriber_lag/sums": 0,
        }

    asyncio.run(work())


def test_the_lag_is_unknown_while_kafka_is_unavailable() -> None:
    async def work() -> None:
        room = Room(readers_max=9, bytes_max=1000, stall_s=30, clock_s=Clock())
        entered(room, "ipv4:10.0.0.1:5", 200, {0: 40})
        note_lags(room, TOPICS, ENDS)
        assert subscriber_values(room, TOPICS)["subscriber_lag/raw"] == 60
        note_lags(room, TOPICS, None)
        found = subscriber_values(room, TOPICS)
        assert "subscriber_lag/raw" not in found
        (named,) = subscribers_in(str(found[queue_metrics.SUBSCRIBERS.name]))
        assert named.lag is None

    asyncio.run(work())
