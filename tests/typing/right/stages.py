"""Each stage takes what the one before gives, and says what it gives itself."""

from collections.abc import Iterator
from typing import assert_type

from bettong import Application, DeadLetter, Fired, Stream
from tests.typing.messages import Alert, Quote, Seen, Trade, Watched

app = Application("stages")


def alert(trade: Trade) -> Alert:
    return Alert(trade.symbol, "seen")


def both(trade: Trade) -> list[Alert]:
    return [Alert(trade.symbol, "one"), Alert(trade.symbol, "two")]


def some(trade: Trade) -> list[Alert | None]:
    return [None, alert(trade)]


def each(trade: Trade) -> Iterator[Alert]:
    yield alert(trade)


def highest(trade: Trade, seen: Seen) -> Alert | None:
    if trade.price <= seen.high:
        return None
    seen.high = trade.price
    return Alert(trade.symbol, "high")


def of_quote(quote: Quote, seen: Seen) -> Alert | None:
    return Alert(quote.symbol, "low") if quote.bid < seen.high else None


def of_either(message: Trade | Quote, seen: Seen) -> Alert | None:
    return highest(message, seen) if isinstance(message, Trade) else of_quote(message, seen)


def counted(trade: Trade, seen: Seen) -> Iterator[Alert]:
    seen.trades += 1
    yield alert(trade)


def watch(trade: Trade, watched: Watched) -> None:
    watched.symbol, watched.quiet_at = trade.symbol, trade.at + 60_000_000_000


def is_quiet(fired: Fired[str], watched: Watched) -> Alert:
    return Alert(watched.symbol, "quiet")


def is_low(trade: Trade) -> bool:
    return trade.price < 1


trades = app.source("trades", schema=Trade, key=lambda trade: trade.symbol, event_time=lambda trade: trade.at)
quotes = app.source("quotes", schema=Quote, key="symbol")
assert_type(trades, Stream[Trade])
assert_type(trades.map(alert), Stream[Alert])
assert_type(trades.filter(is_low), Stream[Trade])
assert_type(trades.filter(lambda trade: trade.price > 1, name="dear"), Stream[Trade])
assert_type(trades.flat_map(both), Stream[Alert])
assert_type(trades.flat_map(some), Stream[Alert])
assert_type(trades.flat_map(each), Stream[Alert])
assert_type(trades.stateful(highest, state=Seen), Stream[Alert])
assert_type(trades.stateful(counted, state=Seen), Stream[Alert])
alerts: Stream[Alert] = trades.stateful(watch, state=Watched, timers={"quiet_at": is_quiet})
assert_type(trades.key_by(("symbol", "venue")), Stream[Trade])
assert_type(trades.collect(), Stream[Trade])
assert_type(trades.map(alert, name="alerts").dead_letters, Stream[DeadLetter])
sizes = trades.branch(low=is_low, other=lambda trade: trade.venue > 7)
assert_type(sizes["low"], Stream[Trade])
assert_type(trades.key_by(lambda trade: trade.venue, name="by-venue"), Stream[Trade])
assert_type(trades.merge(quotes), Stream[Trade | Quote])
trades.merge(quotes).stateful({trades: highest, quotes: of_quote}, state=Seen, name="both-of").sink("highs")
assert_type(trades.merge(quotes).stateful(of_either, state=Seen), Stream[Alert])
trades.stateful(highest, state=Seen, name="ending", delete_when=lambda seen: seen.trades > 9).sink("ends")


def dear(stream: Stream[Trade]) -> Stream[Alert]:
    """A prefix to be used again."""
    return stream.filter(lambda trade: trade.price > 100, name=f"dear-{stream.name}").map(
        alert, name=f"alert-{stream.name}"
    )


more = app.source("more", schema=Trade, key="symbol")
dear(trades).merge(dear(more)).sink("dear-ones", encoder=lambda alert: alert.text.encode())
