"""Keys, encoders and decoders that are functions: what they cannot be is reported where they are given."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import pytest

import bettong
from bettong import Application
from tests.samples.application import Alert, Quote, Seen, Trade, keep, refused


def on_trade(trade: Trade, seen: Seen) -> Alert:
    return Alert(trade.symbol)


@pytest.fixture
def app() -> Application:
    return Application("shop")


def price(trade: Trade) -> float:
    return trade.price


def of_a_quote(quote: Quote) -> str:
    return quote.symbol


def letters(trade: Trade) -> list[str]:
    return list(trade.symbol)


def returns_none(trade: Trade) -> None:
    del trade


def symbol(trade: Trade) -> str:
    return trade.symbol


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (lambda: 1, "must take one argument"),
        (operator.mul, "must take one argument"),
        (price, "must return str, int, bytes or tuple, not float"),
        (letters, "must return str, int, bytes or tuple, not list[str]"),
        (returns_none, "must return str, int, bytes or tuple, not None"),
        (of_a_quote, "parameter 'quote' is annotated Quote, but gets Trade"),
    ],
)
def test_a_function_that_cannot_be_a_key_is_refused(app: Application, key: Any, text: str) -> None:
    with refused(text, "key of 'trades'"):
        app.source("trades", schema=Trade, key=key)
    stream = app.source("keyless", schema=Trade)
    with refused(text, "key of 'by'"):
        stream.key_by(key, name="by")


def test_functions_that_say_nothing_of_themselves_are_taken(app: Application) -> None:
    app.source("a", schema=Trade, key=operator.attrgetter("symbol"), decoder=bettong.each(eval))
    app.source("b", schema=Trade, key=lambda trade: trade.symbol).sink("out", encoder=repr)  # type: ignore[arg-type]
    app.source("c", schema=Trade, key=symbol).sink("text", encoder=lambda trade: trade.symbol.encode())


def as_text(trade: Trade) -> str:
    return trade.symbol


@pytest.mark.parametrize(
    ("encoder", "text"),
    [
        ("json", "'json' is no function"),
        (lambda: b"", "must take one argument"),
        (as_text, "must return bytes, not str"),
        (of_a_quote, "parameter 'quote' is annotated Quote, but gets Trade"),
    ],
)
def test_what_cannot_encode_is_refused(app: Application, encoder: Any, text: str) -> None:
    with refused(text, "encoder of sink 'out'"):
        app.source("trades", schema=Trade).sink("out", encoder=encoder)


def quote_of(row: bytes) -> Quote:
    return Quote(row.decode(), 0.0)


def of_text(row: str) -> Trade:
    return Trade(row, 0.0)


@pytest.mark.parametrize(
    ("decoder", "text"),
    [
        ("json", "'json' is no function"),
        (lambda: 1, "must take one argument"),
        (quote_of, "must return Trade, not Quote"),
        (of_text, "parameter 'row' is annotated str, but gets bytes"),
    ],
)
def test_what_cannot_decode_is_refused(app: Application, decoder: Any, text: str) -> None:
    with refused(text, "decoder of 'trades'"):
        app.source("trades", schema=Trade, decoder=bettong.each(decoder))


@dataclass
class Numbered:
    number: int


def on_numbered(numbered: Numbered, seen: Seen) -> Alert:
    return Alert(str(numbered.number))


def number(numbered: Numbered) -> int:
    return numbered.number


@pytest.mark.parametrize("key", ["number", number])
def test_keys_of_different_types_never_share_a_state(app: Application, key: Any) -> None:
    trades = app.source("trades", schema=Trade, key="symbol").filter(keep)
    numbers = app.source("numbers", schema=Numbered, key=key)
    trades.merge(numbers).stateful({trades: on_trade, numbers: on_numbered}, state=Seen, name="both").sink(
        "out"
    )
    with refused("stateful 'both'", "never meet", "trades (text)", "numbers (integers)"):
        app.check()


def test_a_key_function_that_says_nothing_may_give_any_type(app: Application) -> None:
    trades = app.source("trades", schema=Trade, key="symbol")
    numbers = app.source("numbers", schema=Numbered, key=lambda numbered: str(numbered.number))
    trades.merge(numbers).stateful({trades: on_trade, numbers: on_numbered}, state=Seen).sink("out")
    app.check()
