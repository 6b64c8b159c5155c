"""What the applications by event time share: the messages of a topic, and the topic of results."""

from dataclasses import dataclass

import bettong
from benchmarks.peers.events import EVENT
from benchmarks.peers.load import OUTPUT
from bettong import i64

CONNECTION = "exchange"
RESULTS = bettong.KafkaTopic(OUTPUT, connection=CONNECTION)


@dataclass(slots=True)
class TopicEvent:
    """A message; `at`: Unix ns. See `benchmarks.peers.events`."""

    key: i64
    at: i64
    value: i64


def events(app: bettong.Application, topic: str) -> bettong.Stream[TopicEvent]:
    """The messages of a topic, as a source of its name."""
    return app.source(
        topic,
        schema=TopicEvent,
        key="key",
        event_time="at",
        decoder=bettong.packed(EVENT.format),
        from_=bettong.KafkaTopic(topic, connection=CONNECTION),
    )
