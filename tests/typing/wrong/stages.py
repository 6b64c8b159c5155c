"""Each line that is marked takes what the stage before does not give."""

from bettong import Application, Fired
from tests.typing.messages import Alert, Quote, Seen, Trade, Watched

app = Application("wrong")


def alert(trade: Trade) -> Alert:
    return Alert(trade.symbol, "seen")


def of_quote(quote: Quote) -> Alert:
    return Alert(quote.symbol, "seen")


def is_low(quote: Quote) -> bool:
    return quote.bid < 1


def halves(quote: Quote) -> list[Quote]:
    return [quote, quote]


def on_quote(quote: Quote, seen: Seen) -> Alert | None:
    return None


def on_trade(trade: Trade, seen: Seen) -> Alert | None:
    return None


def encoded(quote: Quote) -> bytes:
    return quote.symbol.encode()


def price(trade: Trade) -> float:
    return trade.price


def one(trade: Trade) -> Alert:
    return alert(trade)


def is_quiet(fired: Fired[str], watched: Watched) -> Alert:
    return Alert(watched.symbol, "quiet")


def never(quote: Quote) -> bool:
    return False


trades = app.source("trades", schema=Trade, key="symbol")
trades.map(of_quote)  # expect: arg-type
trades.map(alert).map(alert, name="again")  # expect: arg-type
trades.filter(is_low)  # expect: arg-type
trades.filter(lambda trade: trade.bid > 1, name="dear")  # expect: attr-defined
trades.flat_map(halves)  # expect: arg-type
trades.flat_map(one)  # expect: arg-type
trades.key_by(price, name="by-price")  # expect: arg-type
trades.key_by(lambda trade: trade.place, name="by-place")  # expect: attr-defined
trades.stateful(on_quote, state=Seen)  # expect: arg-type
trades.stateful(on_trade, state=dict)  # expect: arg-type
trades.stateful(on_trade, state=Seen, timers={"quiet_at": is_quiet})  # expect: arg-type
trades.stateful(on_trade, state=Seen, migrate=lambda *_: Quote("", 0))  # expect: arg-type
trades.stateful(on_trade, state=Seen, delete_when=never)  # expect: arg-type
trades.stateful(on_trade, state=Seen, tll=None)  # expect: call-overload
trades.stateful(on_trade)  # expect: call-overload
trades.sink("out", encoder=encoded)  # expect: arg-type
trades.sink("out").map(alert)  # expect: attr-defined
trades.branch(low=is_low)  # expect: arg-type
trades.branch(low=lambda trade: trade.bid > 1)  # expect: attr-defined
trades.map(alert, name="more").dead_letters.map(alert)  # expect: arg-type
trades.map(alert).sink("texts", encoder=lambda alert: alert.price)  # expect: attr-defined
app.source("others", schema=Quote, key=lambda quote: quote.venue)  # expect: attr-defined
app.source("more", schema=Quote, event_time=lambda quote: quote.at)  # expect: attr-defined
app.source("more", schema=Quote).merge(trades).filter(is_low, name="low")  # expect: arg-type
app.source("more", schema=Quote).merge(alert)  # expect: arg-type
