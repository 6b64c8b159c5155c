"""A client of Market Spread: feeds quotes and orders through the public gRPC API, two streams side by side."""

import struct
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from bettong.client.sender import Sender
from examples.market_spread_load import Columns, Round

FRAME_MESSAGES = 8192
# As if its end had been cut off on the way: no order, so it becomes a dead letter.
_BROKEN_ORDER = b"\x01\x01\x00\x00\x00\x07000042 MSFT"
_ROUND_S_MAX = 120.0


class MarketSpreadClient:
    """Two sessions, one a source."""

    def __init__(self, target: str) -> None:
        with ExitStack() as opened:
            self._quotes = opened.enter_context(Sender(target, "nbbo"))
            self._orders = opened.enter_context(Sender(target, "orders"))
            # From here on both are ours to end, in `__exit__`; had the second failed, the first were closed by now.
            self._opened = opened.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.__exit__(kind, error, trace)

    def initial_quotes(self, file: Path) -> int:
        """Feeds a framed file of quotes as the bytes that they are; durable when it returns how many."""
        data, offset, rows = file.read_bytes(), 0, []
        while offset < len(data):
            (size,) = struct.unpack_from(">I", data, offset)
            rows.append(data[offset + 4 : offset + 4 + size])
            offset += 4 + size
        self._quotes.send_rows(rows)
        self._quotes.flush(_ROUND_S_MAX)
        return len(rows)

    def broken_order(self) -> None:
        """Feeds an order that cannot be read; durable when it returns."""
        self._orders.send_rows([_BROKEN_ORDER])
        self._orders.flush(_ROUND_S_MAX)

    def rounds(self, rounds: Iterable[Round]) -> None:
        """Feeds generated load as columns. Each round is durable before the next begins (see Round)."""
        for each in rounds:
            size = max(len(each.quotes["symbol"]), len(each.orders["symbol"]))
            for start in range(0, size, FRAME_MESSAGES):
                self._send(self._quotes, each.quotes, start)
                self._send(self._orders, each.orders, start)
            self._quotes.flush(_ROUND_S_MAX)
            self._orders.flush(_ROUND_S_MAX)

    def _send(self, sender: Sender, columns: Columns, start: int) -> None:
        piece = {name: column[start : start + FRAME_MESSAGES] for name, column in columns.items()}
        if len(piece["symbol"]):
            sender.send_columns(piece)
