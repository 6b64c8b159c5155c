"""`examples/orders_with_prices.py`: what orders cost by the list of their time."""

from __future__ import annotations

from pathlib import Path

import pytest

from bettong.testing import CaseError, Reference, check, run
from examples.orders_with_prices import Order, Position, Price, app


def test_orders_cost_what_the_list_says_when_they_come() -> None:
    dearer = Reference("priced", [Price("tea", "Tea", 525), Price("milk", "Milk", 129)])
    case = [
        ("orders", Order("ann", "tea", 2)),
        ("orders", Order("bob", "bread", 1)),
        dearer,
        ("orders", Order("ann", "tea", 1)),
        ("orders", Order("bob", "bread", 1)),
    ]
    assert run(app, case).outputs["positions"] == [
        Position("ann", "Tea", 2, 998),
        Position("bob", "Loaf of bread", 1, 320),
        Position("ann", "Tea", 1, 525),
        Position("bob", "bread", 1, 0),
    ]
    check(app, case)


def test_a_list_with_a_price_twice_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    twice = tmp_path / "prices.csv"
    twice.write_text("sku,name,cents\ntea,Tea,499\ntea,Tea,525\n")
    monkeypatch.setenv("ORDERS_PRICES", str(twice))
    with pytest.raises(CaseError, match="join_reference 'priced': key 'sku': 'tea' comes twice"):
        run(app, [("orders", Order("ann", "tea", 1))])
