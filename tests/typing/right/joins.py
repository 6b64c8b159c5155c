"""Joins: what `combine` takes is of both streams, and what it returns is what follows."""

from datetime import timedelta

from bettong import Application, tumbling
from tests.typing.messages import Alert, Quote, Trade

SECOND = timedelta(seconds=1)

app = Application("right")
trades = app.source("trades", schema=Trade, key="symbol", event_time="at")
quotes = app.source("quotes", schema=Quote, key="symbol")


def is_dear(trade: Trade, quote: Quote) -> Alert | None:
    return Alert(trade.symbol, "dear") if trade.price > quote.bid else None


def compared(trade: Trade, quote: Quote | None) -> Alert:
    return Alert(trade.symbol, "alone" if quote is None else "compared")


def is_gone(quote: Quote) -> bool:
    return quote.bid < 0


def text(alert: Alert) -> str:
    return alert.text


def known() -> list[Quote]:
    return [Quote("ACME", 7.0)]


near = trades.join_within(quotes, -SECOND, SECOND, is_dear)
near.key_by(text, name="by-text").sink("texts")
near.late_left.filter(lambda trade: trade.price > 1, name="late-and-dear").sink("late")
near.late_right.filter(lambda quote: quote.bid > 1, name="late-bids").sink("late-quotes")
trades.join_as_of(quotes, compared, tolerance=SECOND, how="left").sink("compared-ones")
latest = trades.join_latest(quotes, compared, how="left", delete_when=is_gone, name="latest", on_error="skip")
latest.sink("latest-ones")
trades.join_window(quotes, tumbling(SECOND), is_dear, name="windowed").sink("windowed-ones")
referenced = trades.join_reference(
    known, is_dear, key="symbol", on=lambda trade: str(trade.venue), name="known"
)
referenced.key_by(text, name="known-by-text").sink("known-texts")
trades.join_reference(lambda spark: spark, compared, key="symbol", how="left", name="spark").sink(
    "spark-ones"
)
