"""Market Spread by Bettong, from topic to topic: the same records as every peer takes, and the same records out.

The reference application has a source for quotes and one for orders; here both come in one topic, so in one schema.
"""

import struct
from dataclasses import dataclass
from typing import Annotated

import bettong
from bettong import Width, f64, u8, u32
from examples.market_spread import Market, Rejected, pack, unix_ns

QUOTE = struct.Struct(">4s21sdd")
ORDER = struct.Struct(">BI6s4sdd21s")


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


def read(record: bytes) -> Message:
    """A record of the topic."""
    if record[0] == 2:
        symbol, time, bid, offer = QUOTE.unpack_from(record, 1)
        return Message(2, symbol.decode(), time, bid, offer)
    side, account, order_id, symbol, quantity, price, time = ORDER.unpack_from(record, 1)
    return Message(1, symbol.decode(), time, quantity, price, side, account, order_id)


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
        side=message.side,
        account=message.account,
        order_id=message.order_id,
        symbol=message.symbol,
        quantity=message.first,
        price=message.second,
        bid=market.bid,
        offer=market.offer,
        time_ns=unix_ns(message.time),
    )


app = bettong.Application("market-spread-topic")
messages = app.source(
    "messages",
    schema=Message,
    key="symbol",
    decoder=bettong.each(read),
    kafka=bettong.ExternalTopic("messages", connection="exchange"),
)
messages.stateful(check, state=Market, name="check").sink(
    "rejected", encoder=pack, to=bettong.KafkaTopic("results", connection="exchange")
)
