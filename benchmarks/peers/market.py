"""What every peer does with a message: Market Spread's rule in plain Python, with nothing but the standard library.

A record of the input topic is one message as the reference application lays it out, without the length in front:

    quote  u8 2, symbol 4, time 21, f64 bid, f64 offer
    order  u8 1, u8 side, u32 account, order id 6, symbol 4, f64 quantity, f64 price, time 21

Its key is the symbol. A record of the output topic is one result, 59 bytes. All big-endian.
"""

import calendar
import struct
from collections.abc import Sequence
from typing import Any

QUOTE = struct.Struct(">B4s21sdd")
ORDER = struct.Struct(">BBI6s4sdd21s")
RESULT = struct.Struct(">IBI6s4sddddQ")
_QUOTE_TYPE = 2
_QUOTE_FIELDS = 4

# Bid, offer, and whether orders are rejected. A symbol without a quote rejects.
Market = Sequence[float]
# A message's fields in the order of the reference application's schemas; bytes for text.
Row = Sequence[Any]
NEW: Market = (0.0, 0.0, True)


def step(message: bytes, market: Market) -> tuple[Market, bytes | None]:
    """The symbol's market after a message, and the result of an order that is rejected."""
    if message[0] == _QUOTE_TYPE:
        _, _, _, bid, offer = QUOTE.unpack(message)
        return quoted(bid, offer), None
    if not market[2]:
        return market, None
    _, side, account, order_id, symbol, quantity, price, time = ORDER.unpack(message)
    return market, result_of((side, account, order_id, symbol, quantity, price, time), market)


def step_row(row: Row, market: Market) -> tuple[Market, bytes | None]:
    """The same for a message that was read from columns: a quote has four fields."""
    if len(row) == _QUOTE_FIELDS:
        return quoted(row[2], row[3]), None
    return market, result_of(row, market) if market[2] else None


def quoted(bid: float, offer: float) -> Market:
    """The market after a quote."""
    spread = offer - bid
    return bid, offer, spread >= 0.05 or spread / ((bid + offer) / 2) >= 0.05


def result_of(order: Row, market: Market) -> bytes:
    """What a rejected order's result is."""
    *fields, time = order
    return RESULT.pack(RESULT.size - 4, *fields, *market[:2], unix_ns(time))


def symbol_of(message: bytes) -> bytes:
    """The key of a message."""
    return message[1:5] if message[0] == _QUOTE_TYPE else message[12:16]


def unix_ns(time: bytes) -> int:
    """Unix nanoseconds of `YYYYMMDD-HH:MM:SS.mmm`, UTC."""
    year, month, day = int(time[:4]), int(time[4:6]), int(time[6:8])
    hour, minute, second = int(time[9:11]), int(time[12:14]), int(time[15:17])
    seconds = calendar.timegm((year, month, day, hour, minute, second))
    return (seconds * 1000 + int(time[18:21])) * 1_000_000
