"""Market Spread as a load of a topic: the initial quotes first, then quotes and orders, each a record of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from benchmarks.lab.market_spread import wrong_symbols
from benchmarks.peers.market import symbol_of
from benchmarks.workload import SEED, Workload, wire_messages, workload
from bettong.lab.load import PARTITION, VALUE, LoadPart

SOURCE, SINK = "messages", "rejected"
_LENGTH_BYTES = 4  # in front of a framed message; a record needs none


class MarketTopicLoad:
    """See `bettong.lab.load.LabLoad`. A symbol's records go into one partition, so that they have one order."""

    def __init__(self, load: Workload) -> None:
        self._load = load
        records = [message[_LENGTH_BYTES:] for message in wire_messages(load)]
        numbers = {symbol: number for number, symbol in enumerate(dict.fromkeys(map(symbol_of, records)))}
        self._values = np.array(records, dtype=object)
        self._partitions = np.array([numbers[symbol_of(record)] for record in records])
        self._initial = len(records) - load.messages

    def first(self) -> Sequence[LoadPart]:
        """A quote of each symbol."""
        return [self._part(slice(0, self._initial))]

    def rounds(self) -> Iterator[Sequence[LoadPart]]:
        """All others, which need no rounds: a partition has one order."""
        yield [self._part(slice(self._initial, None))]

    def result_bytes(self) -> Mapping[str, int]:
        """Of the rejected orders."""
        return {SINK: self._load.result_bytes}

    def wrong(self, results: Mapping[str, bytes]) -> str:
        """Against what a plain loop rejects."""
        return wrong_symbols(self._load, results[SINK])

    def _part(self, some: slice) -> LoadPart:
        return LoadPart(SOURCE, {VALUE: self._values[some], PARTITION: self._partitions[some]})


def load(messages: int, seed: int) -> MarketTopicLoad:
    """The same messages as those by clients."""
    return MarketTopicLoad(workload(messages, seed=SEED + seed))
