"""Orders as a load of the lab: JSON of ten fields, and the expected result of each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from bettong.lab.load import PARTITION, VALUE, LoadPart, SinkResults

SOURCE, SINK = "orders", "totals"
ACCOUNTS = 10_000
COUNTRIES = ("AU", "BR", "DE", "FR", "IN", "JP", "KE", "US")
# Orders before the clock starts, so that all partitions are at work by then.
_FIRST = 1_000


class OrderLoad:
    """See `bettong.lab.load.TopicLoad`. An account's orders go to one partition, which keeps their order."""

    def __init__(self, messages: int, seed: int) -> None:
        drawn = np.random.default_rng(seed)
        count = messages + _FIRST
        accounts = drawn.integers(ACCOUNTS, size=count)
        rows = zip(
            accounts.tolist(),
            drawn.integers(1, 20, size=count).tolist(),
            drawn.integers(1, 10_000, size=count).tolist(),
            strict=True,
        )
        values = [_order(number - _FIRST, *row) for number, row in enumerate(rows)]
        self._accounts, self._values = (
            accounts,
            np.array([json.dumps(each).encode() for each in values], dtype=object),
        )
        self._expected = _totalled(values)

    def first(self) -> Sequence[LoadPart]:
        """The orders before the clock starts."""
        return [self._part(slice(0, _FIRST))]

    def rounds(self) -> Iterator[Sequence[LoadPart]]:
        """All other orders, in one round."""
        yield [self._part(slice(_FIRST, None))]

    def result_bytes(self) -> Mapping[str, int]:
        """The bytes of one result per order."""
        return {SINK: sum(map(len, self._expected))}

    def wrong(self, results: Mapping[str, SinkResults]) -> str:
        """Checks that each result arrived once, byte for byte."""
        found = sorted(results[SINK].each)
        if found == sorted(self._expected):
            return ""
        right = len(set(found) & set(self._expected))
        return f"{len(found)} results for {len(self._expected)}, of which {right} are right"

    def message_of(self, result: bytes) -> int:
        """The order's number; -1 for orders before the clock starts."""
        return max(-1, int(json.loads(result)["order_id"]))

    def _part(self, some: slice) -> LoadPart:
        return LoadPart(SOURCE, {VALUE: self._values[some], PARTITION: self._accounts[some]})


def load(messages: int, seed: int) -> OrderLoad:
    """The orders, with their expected results."""
    return OrderLoad(messages, seed)


def _order(number: int, account: int, quantity: int, cents: int) -> dict[str, object]:
    return {
        "order_id": number,
        "account": account,
        "customer": f"customer {account}",
        "country": COUNTRIES[account % len(COUNTRIES)],
        "product": f"product-{cents % 997}",
        "quantity": quantity,
        "price": cents / 100,
        "discount": (cents % 4) / 8,
        "express": cents % 3 == 0,
        "placed_at": f"2026-11-26T12:{number // 60 % 60:02}:{number % 60:02}",
    }


def _totalled(orders: Sequence[Mapping[str, object]]) -> list[bytes]:
    """The results of a plain loop, as the sink writes them."""
    totals: dict[object, tuple[int, float]] = {}
    expected = []
    names = ("order_id", "account", "customer", "country", "product", "quantity", "price", "discount")
    for order in orders:
        count, amount = totals.get(order["account"], (0, 0.0))
        quantity, price, discount = (float(str(order[name])) for name in ("quantity", "price", "discount"))
        count, amount = count + 1, amount + quantity * price * (1 - discount)
        totals[order["account"]] = count, amount
        row = {name: order[name] for name in names} | {"orders": count, "amount": amount}
        expected.append(json.dumps(row, separators=(",", ":")).encode())
    return expected
