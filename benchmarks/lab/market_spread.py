"""Market Spread as a load of the lab: the initial quotes first, then rounds of quotes and orders, half and half."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from benchmarks.workload import Workload, column_frames, workload
from bettong.lab.load import LoadPart
from examples.market_spread_oracle import by_symbol

SINK = "rejected"


class MarketSpreadLoad:
    """See `bettong.lab.load.LabLoad`."""

    def __init__(self, load: Workload) -> None:
        self._load = load

    def first(self) -> Sequence[LoadPart]:
        """A quote of each symbol."""
        source, columns = next(column_frames(self._load, self._load.messages))
        assert source.schema is not None
        names = [field.name for field in source.schema.fields]
        return [LoadPart(source.name, dict(zip(names, map(np.asarray, columns.columns), strict=True)))]

    def rounds(self) -> Iterator[Sequence[LoadPart]]:
        """Quotes of one half of the symbols beside orders of the other."""
        for each in self._load.rounds:
            yield LoadPart("nbbo", each.quotes), LoadPart("orders", each.orders)

    def result_bytes(self) -> Mapping[str, int]:
        """Of the rejected orders."""
        return {SINK: self._load.result_bytes}

    def wrong(self, results: Mapping[str, bytes]) -> str:
        """Against what a plain loop rejects."""
        found, expected = by_symbol(results[SINK]), self._load.rejected
        bad = [key for key in found.keys() | expected.keys() if found.get(key) != expected.get(key)]
        return f"those of {len(bad)} symbols, such as {min(bad)!r}" if bad else ""


def load(messages: int, seed: int) -> MarketSpreadLoad:  # noqa: ARG001 - the workload has a seed of its own
    """The steady load with its right answer."""
    return MarketSpreadLoad(workload(messages))
