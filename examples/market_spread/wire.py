"""Market Spread's messages as another system lays them out: big-endian, behind a u32 length where they are framed.

    quote     type 2, symbol 4s, time 21s, bid f64, offer f64
    order     type 1, side u8, account u32, order id 6s, symbol 4s, quantity f64, price f64, time 21s
    rejected  side u8, account u32, order id 6s, symbol 4s, quantity f64, price f64, bid f64, offer f64, time u64 (ns)

A type is a u8. A symbol stands at the right of its four characters; a time is `YYYYMMDD-HH:MM:SS.mmm`, UTC.
"""

import struct
from dataclasses import dataclass
from typing import Annotated

import bettong
from bettong import Width, f64, u8, u32, u64

QUOTE_LAYOUT = bettong.packed(">4s21sdd", prefix=b"\x02")
ORDER_LAYOUT = bettong.packed(">BI6s4sdd21s", prefix=b"\x01")
REJECTED_LAYOUT = struct.Struct(">IBI6s4sddddQ")


@dataclass(slots=True)
class Quote:
    """The national best bid and offer of a symbol."""

    symbol: Annotated[str, Width(4)]
    time: Annotated[bytes, Width(21)]
    bid: f64
    offer: f64


@dataclass(slots=True)
class Order:
    """A client's order."""

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


def pack(rejected: Rejected) -> bytes:
    """The result as it goes out: 59 bytes with their length in front, big-endian."""
    return REJECTED_LAYOUT.pack(
        REJECTED_LAYOUT.size - 4,
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
