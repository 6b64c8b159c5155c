"""The interval join by Bettong, from two topics to one."""

from dataclasses import dataclass
from datetime import timedelta

import bettong
from benchmarks.peers.bettong.topics import RESULTS, TopicEvent, events
from benchmarks.peers.events import BOUND_MS, LEFT, PAIR, RIGHT
from bettong import i64


@dataclass(slots=True)
class ValuePair:
    """The values of a pair."""

    key: i64
    left: i64
    right: i64


@bettong.compiled
def paired(left: TopicEvent, right: TopicEvent) -> ValuePair:
    """What is asked of a pair."""
    return ValuePair(left.key, left.value, right.value)


def pack(pair: ValuePair) -> bytes:
    """A result as it goes out."""
    return PAIR.pack(pair.key, pair.left, pair.right)


BOUND = timedelta(milliseconds=BOUND_MS)

app = bettong.Application("interval-join-topic")
pairs = events(app, LEFT).join_within(events(app, RIGHT), -BOUND, BOUND, paired, name="pairs")
pairs.sink("paired", encoder=pack, to=RESULTS)
