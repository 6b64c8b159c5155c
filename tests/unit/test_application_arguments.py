"""Wrong arguments of the methods that build an application are refused by name, where they are given."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import pytest

import bettong
from bettong import Application
from tests.samples.application import Alert, Quote, Seen, Trade, refused

SECOND = timedelta(seconds=1)


def on_trade(trade: Trade, seen: Seen) -> Alert | None:
    return Alert(trade.symbol) if seen.anything else None


def both(trade: Trade, other: Trade) -> Alert | None:
    return Alert(trade.symbol) if other.price else None


async def upgraded_later(old: Any, version: int) -> Seen:
    return old if version else Seen()


async def upgrades(old: Any, version: int) -> AsyncIterator[Seen]:
    yield old if version else Seen()


def upgraded(old: Any) -> Seen:
    return old or Seen()


@pytest.fixture
def app() -> Application:
    return Application("shop")


@pytest.fixture
def trades(app: Application) -> Any:
    return app.source("trades", schema=Trade, key="symbol")


@pytest.mark.parametrize(
    "decoder",
    ["json", bettong.packed, bettong.each, lambda _: Trade("", 0.0), {b"T": bettong.packed(">4sd")}],
)
def test_a_decoder_is_one_of_bettongs(app: Application, decoder: Any) -> None:
    with refused(f"source 'in': decoder={decoder!r} is no decoder; expected bettong.each(function), packed("):
        app.source("in", schema=Trade, decoder=decoder)


@pytest.mark.parametrize(
    ("call", "texts"),
    [
        (
            lambda trades, given: trades.stateful(on_trade, state=Seen, **given),
            ("stateful of source 'trades'", "one of delete_when, "),
        ),
        (
            lambda trades, given: trades.join_within(trades, -SECOND, SECOND, both, **given),
            ("join_within of 'trades'", "one of name, on_error, version"),
        ),
        (lambda trades, given: trades.join_latest(trades, both, **given), ("join_latest of 'trades'",)),
        (lambda trades, given: trades.join_as_of(trades, both, **given), ("join_as_of of 'trades'",)),
        (
            lambda trades, given: trades.join_window(trades, bettong.tumbling(SECOND), both, **given),
            ("join_window of 'trades'",),
        ),
        (
            lambda trades, given: trades.local("symbol").window(bettong.tumbling(SECOND), None, **given),
            ("window after local of 'trades'", "one of early, emit_empty, "),
        ),
    ],
)
@pytest.mark.parametrize("option", ["nam", "method", "left", "lifetime", "handlers", "parent", "late"])
def test_an_option_that_is_none_is_named_with_those_that_are(
    trades: Any, call: Callable[[Any, dict[str, int]], object], texts: tuple[str, ...], option: str
) -> None:
    with refused(f"unknown option {option!r}; expected one of ", *texts):
        call(trades, {option: 1})


def test_handlers_are_by_streams_of_the_application(trades: Any) -> None:
    of_another = Application("other").source("quotes", schema=Quote, key="symbol")
    for key in ("trades", of_another, Trade, trades.node):
        with refused(f"stateful of 'trades': {key!r} is no stream of this application"):
            trades.stateful({trades: on_trade, key: on_trade}, state=Seen)


@pytest.mark.parametrize(
    ("migrate", "text"),
    [
        (7, "migrate=7: expected a function of an old state and its version"),
        (upgraded, "must take an old state and its version: too many positional arguments"),
        (upgraded_later, "migrate: it is an async function"),
        (upgrades, "migrate: it is an async function"),
    ],
)
def test_a_migration_is_a_plain_function_of_a_state_and_a_version(
    trades: Any, migrate: Any, text: str
) -> None:
    with refused("stateful 'on_trade'", text):
        trades.stateful(on_trade, state=Seen, version=2, migrate=migrate)


def test_a_migration_may_be_a_builtin_without_a_signature(trades: Any) -> None:
    assert trades.stateful(on_trade, state=Seen, version=2, migrate=max).name == "on_trade"
