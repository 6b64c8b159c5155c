"""Marked functions that take, or give, what the stage does not."""

from bettong import Application, RowIndexes, compiled, vectorized
from tests.typing.messages import Alert, Quote, Seen, Trade

app = Application("wrong")


@compiled
def is_low(quote: Quote) -> bool:
    return quote.bid < 1


@vectorized
def some(quotes: Quote) -> tuple[Quote, RowIndexes]:
    raise NotImplementedError


@vectorized
def seen(quotes: Quote, seen: Seen, keys: RowIndexes) -> Quote:
    raise NotImplementedError


@vectorized
def of_trade(trades: Trade) -> tuple[Alert, RowIndexes]:
    raise NotImplementedError


trades = app.source("trades", schema=Trade, key="symbol")
trades.filter(is_low)  # expect: arg-type
trades.flat_map(some)  # expect: arg-type
trades.stateful(seen, state=Seen)  # expect: arg-type
trades.flat_map(of_trade).filter(is_low, name="low")  # expect: arg-type
