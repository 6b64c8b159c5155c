"""Market Spread by Bettong, from topic to topic: the same records as every peer takes, and the same records out.

The reference application has a source for quotes and one for orders; here both come in one topic, so in one schema.
"""

from dataclasses import dataclass
from typing import Annotated

import bettong
from benchmarks.peers.market import result_of
from bettong import Width, f64, u8, u32


@dataclass(slots=True)
class Message:
    """A quote (`kind` 2: `first` is its bid, `second` its offer) or an order (1: quantity and price)."""

    kind: u8
    symbol: Annotated[str, Width(4)]
    time: Annotated[bytes, Width(21)]
    first: f64
    second: f64
    side: u8 = 0
    account: u32 = 0
    order_id: Annotated[bytes, Width(6)] = b""


@dataclass(slots=True)
class Rejected(Message):
    """An order that the spread forbids, with the quote that it was judged by."""

    bid: f64 = 0.0
    offer: f64 = 0.0


@dataclass(slots=True)
class Market:
    """What is kept of a symbol. Without a quote, it rejects."""

    bid: float = 0.0
    offer: float = 0.0
    reject: bool = True


# The records' first byte tells which they are; see `benchmarks.peers.market`.
RECORDS = bettong.tagged(
    {
        b"\x01": bettong.packed(
            ">BBI6s4sdd21s",
            fields=("kind", "side", "account", "order_id", "symbol", "first", "second", "time"),
        ),
        b"\x02": bettong.packed(">B4s21sdd", fields=("kind", "symbol", "time", "first", "second")),
    }
)


@bettong.compiled
def check(message: Message, market: Market) -> Rejected | None:
    """Keeps a quote; rejects an order when the symbol does."""
    if message.kind == 2:
        spread = message.second - message.first
        middle = (message.first + message.second) / 2
        market.bid = message.first
        market.offer = message.second
        market.reject = spread >= 0.05 or spread / middle >= 0.05
        return None
    if not market.reject:
        return None
    return Rejected(
        kind=message.kind,
        symbol=message.symbol,
        time=message.time,
        first=message.first,
        second=message.second,
        side=message.side,
        account=message.account,
        order_id=message.order_id,
        bid=market.bid,
        offer=market.offer,
    )


def pack(rejected: Rejected) -> bytes:
    """The result as every peer gives it."""
    order = (
        rejected.side,
        rejected.account,
        rejected.order_id,
        rejected.symbol.encode(),
        rejected.first,
        rejected.second,
        rejected.time,
    )
    return result_of(order, (rejected.bid, rejected.offer))


app = bettong.Application("market-spread-topic")
messages = app.source(
    "messages",
    schema=Message,
    key="symbol",
    decoder=RECORDS,
    from_=bettong.KafkaTopic("messages", connection="exchange"),
)
messages.stateful(check, state=Market, name="check").sink(
    "rejected", encoder=pack, to=bettong.KafkaTopic("results", connection="exchange")
)
