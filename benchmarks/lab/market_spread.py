"""Market Spread as a load of the lab: the initial quotes first, then rounds of quotes and orders, half and half."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from benchmarks.workload import SEED, Workload, column_frames, workload
from bettong.lab.load import LoadPart
from examples.market_spread_oracle import by_symbol

SOURCE, SINK = "nbbo", "rejected"


class MarketSpreadLoad:
    """See `bettong.lab.load.LabLoad`."""

    def __init__(self, load: Workload) -> None:
        self._load = load

    def first(self) -> Sequence[LoadPart]:
        """The quotes before the clock starts: at least one of each symbol."""
        source, columns = next(column_frames(self._load, self._load.messages))
        assert source.schema is not None
        names = [field.name for field in source.schema.fields]
        initial = LoadPart(SOURCE, dict(zip(names, map(np.asarray, columns.columns), strict=True)))
        further = self._load.further
        return [initial] if not further else [initial, LoadPart(SOURCE, further.quotes)]

    def rounds(self) -> Iterator[Sequence[LoadPart]]:
        """Quotes of one half of the symbols, beside orders of the other half."""
        for each in self._load.rounds:
            yield LoadPart(SOURCE, each.quotes), LoadPart("orders", each.orders)

    def result_bytes(self) -> Mapping[str, int]:
        """The bytes of all rejected orders."""
        return {SINK: self._load.result_bytes}

    def wrong(self, results: Mapping[str, bytes]) -> str:
        """Compares them with the orders that a plain loop rejects."""
        return wrong_symbols(self._load, results[SINK])


def wrong_symbols(load: Workload, results: bytes) -> str:
    """Which symbols have other rejected orders, or in another order, than a plain loop; "" if none has."""
    found, expected = by_symbol(results), load.rejected
    bad = [key for key in found.keys() | expected.keys() if found.get(key) != expected.get(key)]
    return f"those of {len(bad)} symbols, such as {min(bad)!r}" if bad else ""


def load(messages: int, seed: int) -> MarketSpreadLoad:
    """The steady load, with its expected results; seed 0 is the load of `make bench`."""
    return MarketSpreadLoad(workload(messages, seed=SEED + seed))
