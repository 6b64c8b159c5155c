"""Market Spread of 2926 symbols, the upper end of its procedure, as a load of the lab."""

from __future__ import annotations

from benchmarks.lab.market_spread import MarketSpreadLoad
from benchmarks.workload import SEED, workload

SYMBOLS = 2926


def load(messages: int, seed: int) -> MarketSpreadLoad:
    """The load of `market_spread`, with more symbols."""
    return MarketSpreadLoad(workload(messages, seed=SEED + seed, symbols=SYMBOLS))
