"""Each line that is marked joins what does not go together."""

from datetime import timedelta

from bettong import Application
from tests.typing.messages import Alert, Quote, Trade

app = Application("wrong")
trades = app.source("trades", schema=Trade, key="symbol", event_time="at")
quotes = app.source("quotes", schema=Quote, key="symbol")
SECOND = timedelta(seconds=1)


def is_dear(trade: Trade, quote: Quote) -> Alert | None:
    return Alert(trade.symbol, "dear") if trade.price > quote.bid else None


def is_low(quote: Quote) -> bool:
    return quote.bid < 1


quotes.join_as_of(quotes, is_dear)  # expect: arg-type
trades.join_latest(quotes, is_dear, how="full")  # expect: arg-type
trades.join_within(quotes, -1, SECOND, is_dear)  # expect: arg-type
trades.join_as_of(quotes, is_dear, name="low").filter(is_low)  # expect: arg-type
quotes.join_reference(list, is_dear, key="symbol")  # expect: arg-type
trades.join_reference(list, is_dear, key="symbol", how="outer")  # expect: arg-type
trades.join_reference(list, is_dear, key="symbol", on=is_low)  # expect: arg-type
trades.join_reference(list, is_dear, key="symbol", name="dear").filter(is_low)  # expect: arg-type
