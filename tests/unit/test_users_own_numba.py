"""Functions of users' own `numba.njit` that a compiled function calls: what they do to states is checked as its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import pytest

import bettong
from bettong import Application, ApplicationError
from bettong.application.plan import plan
from bettong.worker.stage_program import program
from tests.samples.worker import data, fold, results, worker


@dataclass
class Trade:
    key: int
    price: float


@dataclass
class Seen:
    whole: int = 0
    price: float = 0.0
    large: bool = False


@numba.njit
def keeps_a_fraction(trade: Any, seen: Any) -> None:
    seen.whole = trade.price


@numba.njit
def calls_who_keeps_a_fraction(trade: Any, seen: Any) -> None:
    keeps_a_fraction(trade, seen)


@numba.njit(fastmath=True)
def keeps_a_float_as_a_bool(trade: Any, seen: Any) -> None:
    seen.large = trade.price


@numba.njit
def keeps_what_fits(trade: Any, seen: Any) -> None:
    seen.price = trade.price
    seen.whole += int(trade.price)


def stage_of(own: Any) -> Any:
    def fold_trade(trade: Trade, seen: Seen) -> Trade:
        own(trade, seen)
        return Trade(seen.whole, seen.price)

    app = Application("meters")
    trades = app.source("in", schema=Trade, key="key")
    trades.stateful(bettong.compiled(fold_trade), state=Seen, name="fold").sink("out")
    return plan(app).stages[0]


@pytest.mark.parametrize(
    ("own", "complaint"),
    [
        (keeps_a_fraction, "field 'whole' of a Seen is an int64, not a float64"),
        (calls_who_keeps_a_fraction, "field 'whole' of a Seen is an int64, not a float64"),
        (keeps_a_float_as_a_bool, "field 'large' of a Seen is a bool, not a float64"),
    ],
)
def test_a_float_in_a_field_of_integers_is_refused_in_functions_of_users_own_numba(
    own: Any, complaint: str
) -> None:
    with pytest.raises(ApplicationError) as refused:
        program(stage_of(own), compiled=True)
    assert complaint in str(refused.value)


def test_what_fits_is_kept_and_the_users_own_stays_as_it_was() -> None:
    of = worker(program(stage_of(keeps_what_fits), compiled=True))
    found = results(fold(of, [data("in/a", 1, [Trade(1, 1.5), Trade(1, 2.5)])]), "meters.sink.out", Trade)
    assert found == [Trade(1, 1.5), Trade(3, 2.5)]
    assert not keeps_what_fits.overloads
