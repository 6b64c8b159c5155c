"""Market Spread of 2926 symbols, as many as its procedure goes up to, as a load of the lab."""

from __future__ import annotations

from benchmarks.lab.market_spread import MarketSpreadLoad
from benchmarks.workload import SEED, workload

SYMBOLS = 2926


def load(messages: int, seed: int) -> MarketSpreadLoad:
    """As that of 350 symbols, with more of them."""
    return MarketSpreadLoad(workload(messages, seed=SEED + seed, symbols=SYMBOLS))
