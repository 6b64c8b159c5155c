"""What a race is about: a name, what is asked in a line, the messages with their right answer, and the plain loop."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

from benchmarks.peers import event_loads
from benchmarks.peers.event_loads import EventLoad
from benchmarks.peers.load import Load
from benchmarks.peers.market_load import market_load, market_loop
from benchmarks.peers.nexmark.load import nexmark_load, nexmark_loop
from benchmarks.peers.nexmark.queries import QUERIES, NexmarkQuery
from benchmarks.peers.word_load import word_load, word_loop


@dataclass(frozen=True, slots=True)
class PeerWorkload:
    """`load`: so many messages and their right answer. `loop`: messages a second of the plain loop, for so many.

    `query`: which one of those that share a program, else "". `at_rate`: messages come at a fixed rate, and latency is
    measured instead of speed. `partitions`: of every topic, by default.
    """

    name: str
    asked: str
    load: Callable[[int], Load]
    loop: Callable[[int], float]
    query: str = ""
    at_rate: bool = False
    partitions: int = 4

    @property
    def module(self) -> str:
        """Its module in a folder of programs."""
        return self.name.removesuffix(f"-{self.query}").replace("-", "_")


MARKET_SPREAD = PeerWorkload("market-spread", "orders against quotes, 350 symbols", market_load, market_loop)

WORD_COUNT = PeerWorkload(
    "word-count",
    "counts of 50,000 words, a result a record, by the time when a record was due",
    word_load,
    word_loop,
    at_rate=True,
    partitions=2,
)


def _by_event_time(name: str, asked: str, load: Callable[[int], EventLoad]) -> PeerWorkload:
    loaded = cache(load)
    return PeerWorkload(
        name,
        asked,
        lambda messages: loaded(messages).of_race(),
        lambda messages: loaded(messages).loop_per_s(),
    )


NEXMARK = "nexmark"


def _nexmark(query: NexmarkQuery) -> PeerWorkload:
    bettong = "compiled" if query.compiled else "in plain Python"
    return PeerWorkload(
        f"{NEXMARK}-{query.name}",
        f"{query.asked} (Bettong {bettong})",
        partial(nexmark_load, query),
        partial(nexmark_loop, query),
        query.name,
    )


WORKLOADS = {
    workload.name: workload
    for workload in (
        MARKET_SPREAD,
        WORD_COUNT,
        _by_event_time(
            "tumbling", "count and sum of windows of 10 s, 100,000 keys", event_loads.tumbling_load
        ),
        _by_event_time(
            "sliding", "count and sum of windows of 60 s each second, 1,000 keys", event_loads.sliding_load
        ),
        _by_event_time(
            "interval-join", "pairs of two topics at most 1 s apart, 10,000 keys", event_loads.join_load
        ),
        _by_event_time(
            "timers", "orders without approval within 600 s, 100,000 keys", event_loads.timer_load
        ),
        *map(_nexmark, QUERIES.values()),
    )
}

# As they are asked for: queries share a name.
NAMES = list(dict.fromkeys(each.module.replace("_", "-") for each in WORKLOADS.values()))
