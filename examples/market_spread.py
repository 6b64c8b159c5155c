"""Market Spread: a pre-trade risk check, the reference application.

Quotes keep the spread of each symbol; an order on a symbol whose spread is too wide is rejected.

    bettong run examples/market_spread.py
    bettong send nbbo quotes.msg        (framed binary: u32 length, then the message)
    bettong send orders orders.msg
    bettong tail rejected
"""

import struct
from dataclasses import dataclass
from typing import Annotated

import bettong
from bettong import Width, f64, u8, u32, u64


@dataclass(slots=True)
class Quote:
    """The national best bid and offer of a symbol."""

    symbol: Annotated[str, Width(4)]
    time: Annotated[bytes, Width(21)]
    bid: f64
    offer: f64


@dataclass(slots=True)
class Order:
    """A client's order. `time` is `YYYYMMDD-HH:MM:SS.mmm`."""

    side: u8
    account: u32
    order_id: Annotated[bytes, Width(6)]
    symbol: Annotated[str, Width(4)]
    quantity: f64
    price: f64
    time: Annotated[bytes, Width(21)]


@dataclass(slots=True)
class Rejected:
    """An order that the spread forbids, with the quote that it was judged by."""

    side: u8
    account: u32
    order_id: Annotated[bytes, Width(6)]
    symbol: Annotated[str, Width(4)]
    quantity: f64
    price: f64
    bid: f64
    offer: f64
    time_ns: u64


@dataclass(slots=True)
class Market:
    """What is kept of a symbol. Without a quote, it rejects."""

    bid: f64 = 0.0
    offer: f64 = 0.0
    reject: bool = True


@bettong.compiled
def on_quote(quote: Quote, market: Market) -> None:
    """Keeps the quote, and whether its spread is too wide."""
    spread = quote.offer - quote.bid
    middle = (quote.bid + quote.offer) / 2
    market.bid = quote.bid
    market.offer = quote.offer
    market.reject = spread >= 0.05 or spread / middle >= 0.05


@bettong.compiled
def on_order(order: Order, market: Market) -> Rejected | None:
    """Rejects the order when the symbol does."""
    if not market.reject:
        return None
    return Rejected(
        side=order.side,
        account=order.account,
        order_id=order.order_id,
        symbol=order.symbol,
        quantity=order.quantity,
        price=order.price,
        bid=market.bid,
        offer=market.offer,
        time_ns=unix_ns(order.time),
    )


def unix_ns(time: bytes) -> int:
    """Unix nanoseconds of `YYYYMMDD-HH:MM:SS.mmm`, UTC."""
    year, month, day = digits(time, 0, 4), digits(time, 4, 6), digits(time, 6, 8)
    # Days since 1970 of the proleptic Gregorian calendar, with years that start in March.
    shifted = year - 1 if month <= 2 else year
    leaps = shifted // 4 - shifted // 100 + shifted // 400
    days = 365 * shifted + leaps + (153 * ((month + 9) % 12) + 2) // 5 + day - 1 - 719468
    seconds = days * 86400 + digits(time, 9, 11) * 3600 + digits(time, 12, 14) * 60 + digits(time, 15, 17)
    return (seconds * 1000 + digits(time, 18, 21)) * 1_000_000


def digits(text: bytes, start: int, stop: int) -> int:
    """The decimal number in `text[start:stop]`."""
    number = 0
    for index in range(start, stop):
        number = number * 10 + text[index] - 48
    return number


def pack(rejected: Rejected) -> bytes:
    """The result as it goes out: 59 bytes with their length in front, big-endian."""
    return RESULT.pack(
        RESULT.size - 4,
        rejected.side,
        rejected.account,
        rejected.order_id,
        rejected.symbol.encode(),
        rejected.quantity,
        rejected.price,
        rejected.bid,
        rejected.offer,
        rejected.time_ns,
    )


RESULT = struct.Struct(">IBI6s4sddddQ")

app = bettong.Application("market-spread")
quotes = app.source("nbbo", schema=Quote, key="symbol", decoder=bettong.packed(">4s21sdd", prefix=b"\x02"))
orders = app.source(
    "orders", schema=Order, key="symbol", decoder=bettong.packed(">BI6s4sdd21s", prefix=b"\x01")
)
(
    quotes.merge(orders)
    .stateful({quotes: on_quote, orders: on_order}, state=Market, name="check")
    .sink("rejected", encoder=pack)
)
