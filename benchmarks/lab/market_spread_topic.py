"""Market Spread as a load of a topic: the initial quotes first, then quotes and orders, one per record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from benchmarks.lab.market_spread import wrong_symbols
from benchmarks.peers.market import symbol_of
from benchmarks.workload import SEED, Workload, wire_messages, workload
from bettong.lab.load import PARTITION, VALUE, LoadPart

SOURCE, SINK = "messages", "rejected"
_LENGTH_BYTES = 4  # the prefix of a framed message; a record has none


class MarketTopicLoad:
    """See `bettong.lab.load.LabLoad`. A symbol's records go to one partition, which keeps their order."""

    def __init__(self, load: Workload) -> None:
        self._load = load
        records = [message[_LENGTH_BYTES:] for message in wire_messages(load)]
        numbers = {symbol: number for number, symbol in enumerate(dict.fromkeys(map(symbol_of, records)))}
        self._values = np.array(records, dtype=object)
        self._partitions = np.array([numbers[symbol_of(record)] for record in records])
        self._initial = len(records) - load.messages

    def first(self) -> Sequence[LoadPart]:
        """The quotes before the clock starts: at least one of each symbol."""
        return [self._part(slice(0, self._initial))]

    def rounds(self) -> Iterator[Sequence[LoadPart]]:
        """All other records, in one round: partitions keep the order."""
        yield [self._part(slice(self._initial, None))]

    def result_bytes(self) -> Mapping[str, int]:
        """The bytes of all rejected orders."""
        return {SINK: self._load.result_bytes}

    def wrong(self, results: Mapping[str, bytes]) -> str:
        """Compares them with the orders that a plain loop rejects."""
        return wrong_symbols(self._load, results[SINK])

    def _part(self, some: slice) -> LoadPart:
        return LoadPart(SOURCE, {VALUE: self._values[some], PARTITION: self._partitions[some]})


def load(messages: int, seed: int) -> MarketTopicLoad:
    """The messages of `market_spread`, as records."""
    return MarketTopicLoad(workload(messages, seed=SEED + seed))
