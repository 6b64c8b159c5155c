"""The right answer to Market Spread, by a loop as plain as can be: no Bettong, no numpy arithmetic."""

import calendar
import struct
from collections.abc import Iterable
from pathlib import Path

from examples.market_spread_load import INITIAL_QUOTES, Columns, Round

RESULT = struct.Struct(">IBI6s4sddddQ")

# Result bytes by symbol, in their order.
Results = dict[bytes, list[bytes]]


class Oracle:
    """Quotes and orders in, one at a time; the bytes of each rejected order out."""

    def __init__(self) -> None:
        self.market: dict[bytes, tuple[float, float, bool]] = {}
        self.rejected: Results = {}

    def quote(self, symbol: bytes, bid: float, offer: float) -> None:
        """Takes one quote."""
        middle = (bid + offer) / 2
        reject = (offer - bid >= 0.05) or ((offer - bid) / middle >= 0.05)
        self.market[symbol] = (bid, offer, reject)

    def order(
        self,
        side: int,
        account: int,
        order_id: bytes,
        symbol: bytes,
        quantity: float,
        price: float,
        time: bytes,
    ) -> None:
        """Takes one order."""
        bid, offer, reject = self.market.get(symbol, (0.0, 0.0, True))
        if reject:
            result = RESULT.pack(
                55, side, account, order_id, symbol, quantity, price, bid, offer, nanoseconds(time)
            )
            self.rejected.setdefault(symbol, []).append(result)

    def initial_quotes(self, file: Path) -> int:
        """Takes a framed file of quotes; returns how many it had."""
        data, offset, count = file.read_bytes(), 0, 0
        while offset < len(data):
            _, _, symbol, _, bid, offer = struct.unpack_from(">IB4s21sdd", data, offset)
            self.quote(symbol, bid, offer)
            offset, count = offset + 46, count + 1
        return count

    def rounds(self, rounds: Iterable[Round]) -> None:
        """Takes generated load, in the order in which it is sent."""
        for each in rounds:
            for symbol, _, bid, offer in rows(each.quotes):
                self.quote(symbol, bid, offer)
            for row in rows(each.orders):
                self.order(*row)


def rejected(load: Iterable[Round]) -> Results:
    """What the initial quotes and then generated load have for results."""
    oracle = Oracle()
    oracle.initial_quotes(INITIAL_QUOTES)
    oracle.rounds(load)
    return oracle.rejected


def rows(columns: Columns) -> Iterable[tuple]:  # type: ignore[type-arg]  # rows of any schema
    """The rows of columns, as plain Python values."""
    return zip(*(column.tolist() for column in columns.values()), strict=True)


def nanoseconds(time: bytes) -> int:
    """Unix nanoseconds of `YYYYMMDD-HH:MM:SS.mmm`, UTC, by the standard library."""
    text = time.decode()
    seconds = calendar.timegm(
        (int(text[0:4]), int(text[4:6]), int(text[6:8]), int(text[9:11]), int(text[12:14]), int(text[15:17]))
    )
    return (seconds * 1000 + int(text[18:21])) * 1_000_000


def by_symbol(results: bytes) -> Results:
    """Result bytes, of one or several files, as lists a symbol."""
    found: Results = {}
    for offset in range(0, len(results), RESULT.size):
        result = results[offset : offset + RESULT.size]
        found.setdefault(result[15:19], []).append(result)
    return found
