"""Compiled functions are typed as plain ones; those over whole columns as they are annotated."""

from typing import assert_type

import numpy as np

from bettong import Application, RowIndexes, Stream, compiled, vectorized
from tests.typing.messages import Seen, Trade, Volume

app = Application("speeds")


@compiled
def count(trade: Trade, seen: Seen) -> Volume:
    seen.trades += 1
    return Volume(trade.symbol, seen.trades, seen.high)


@compiled
def is_dear(trade: Trade) -> bool:
    return trade.price > 100


@vectorized
def volume(trades: Trade) -> Volume:
    return Volume(trades.symbol, 1, trades.price)


@vectorized
def dear(trades: Trade) -> tuple[Volume, RowIndexes]:
    rows = np.flatnonzero(np.asarray(trades.price) > 100)
    return Volume(trades.symbol, 1, trades.price), rows


@vectorized
def all_seen(trades: Trade, seen: Seen, keys: RowIndexes) -> Volume:
    return Volume(trades.symbol, seen.trades, trades.price)


@vectorized
def some_seen(trades: Trade, seen: Seen, keys: RowIndexes) -> tuple[Volume, RowIndexes]:
    return Volume(trades.symbol, seen.trades, trades.price), keys


trades = app.source("trades", schema=Trade, key="symbol")
assert_type(trades.filter(is_dear).stateful(count, state=Seen), Stream[Volume])
assert_type(trades.map(volume), Stream[Volume])
assert_type(trades.flat_map(dear), Stream[Volume])
assert_type(trades.stateful(all_seen, state=Seen), Stream[Volume])
assert_type(trades.stateful(some_seen, state=Seen), Stream[Volume])
