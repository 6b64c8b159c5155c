"""Describing an application: each mistake is refused where it is made, by an error that names the stage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

import bettong
from bettong import Application
from bettong.application.nodes.stateful import Stateful
from bettong.schema.schema import schema_of
from tests.samples.application import Alert, Quote, Seen, Trade, keep, refused


def alert(trade: Trade) -> Alert:
    return Alert(trade.symbol)


def alerts(trade: Trade) -> Iterator[Alert]:
    yield Alert(trade.symbol)


def on_trade(trade: Trade, seen: Seen) -> Alert | None:
    return Alert(trade.symbol) if seen.anything else None


def on_quote(quote: Quote, seen: Seen) -> Alert | None:
    return Alert(quote.symbol) if seen.anything else None


@pytest.fixture
def app() -> Application:
    return Application("shop")


@pytest.mark.parametrize("name", ["", "a b", "-a", "a.b", "ä", "a/b", "a+b", "x" * 101])
def test_a_name_that_no_topic_could_have_is_refused(app: Application, name: str) -> None:
    with refused("expected 1 to 100 letters", "application", repr(name)):
        Application(name)
    with refused("expected 1 to 100 letters", "source", repr(name)):
        app.source(name, schema=Trade)


def test_a_name_that_is_no_text_is_refused() -> None:
    with refused("application name 7"):
        Application(7)  # type: ignore[arg-type]


def test_dead_letters_is_bettongs_own_name(app: Application) -> None:
    trades = app.source("trades", schema=Trade)
    with refused("'dead-letters' is Bettong's own"):
        trades.sink("dead-letters")


def test_a_name_is_taken_once(app: Application) -> None:
    trades = app.source("trades", schema=Trade)
    with refused("'trades' is taken by a source of 'shop'", "choose another: dead letters and metrics"):
        app.source("trades", schema=Quote)
    with refused("'trades' is taken by a source of 'shop'", "choose another: dead letters and metrics"):
        trades.sink("trades")
    trades.map(alert)
    with refused("'alert' is taken by a map of", "give name=... to tell them apart"):
        trades.map(alert)
    trades.map(alert, name="alert-too")
    trades.sink("out")
    with refused("'out' is taken by a sink"):
        trades.sink("out")


def test_another_name_tells_two_uses_of_a_function_apart(app: Application) -> None:
    trades = app.source("trades", schema=Trade)
    assert trades.map(alert).name == "alert"
    assert trades.map(alert, name="again").name == "again"


def test_a_source_needs_a_dataclass(app: Application) -> None:
    with refused("source 'trades'", "expected a class decorated with @dataclass"):
        app.source("trades", schema=dict)


def test_nodes_know_their_schema_and_their_key(app: Application) -> None:
    keyed = app.source("trades", schema=Trade, key="symbol")
    assert keyed.keyed
    assert keyed.map(alert).keyed
    assert keyed.map(alert, name="x").schema == schema_of(Alert)
    assert not app.source("keyless", schema=Trade).filter(keep).keyed


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("missing", "Trade has no field 'missing'; it has symbol, price"),
        ("price", "field 'price' is a float"),
        (("symbol", "symbol"), "('symbol', 'symbol') names field 'symbol' twice; name it once"),
        (("symbol", 7), "Trade has no field 7; it has symbol, price"),
        (7, "7 is neither a field's name, nor a tuple of such names, nor a function"),
    ],
)
def test_a_key_is_a_field_that_can_be_compared_or_a_function(app: Application, key: Any, text: str) -> None:
    with refused(text, "key of 'trades'"):
        app.source("trades", schema=Trade, key=key)
    stream = app.source("keyless", schema=Trade)
    with refused(text, "key of 'by'"):
        stream.key_by(key, name="by")


def test_an_application_without_a_source_is_refused(app: Application) -> None:
    with refused("application 'shop' has no source", ".source(...)"):
        app.check()


def test_a_stream_that_leads_to_no_sink_is_named(app: Application) -> None:
    trades = app.source("trades", schema=Trade)
    trades.sink("out")
    app.check()
    trades.map(alert)
    with refused("mapped 'alert' leads to no sink", ".sink(...)"):
        app.check()


def test_a_source_that_nobody_reads_is_named(app: Application) -> None:
    app.source("trades", schema=Trade).sink("out")
    app.source("quotes", schema=Quote)
    with refused("source 'quotes' leads to no sink"):
        app.check()


@pytest.mark.parametrize("method", ["map", "filter", "flat_map", "key_by", "merge", "stateful", "sink"])
def test_nothing_follows_a_sink(app: Application, method: str) -> None:
    sink = app.source("trades", schema=Trade).sink("out")
    with refused(f"'{method}' after sink 'out'", "'trades'"):
        getattr(sink, method)


def test_a_sink_is_asked_politely_by_tools(app: Application) -> None:
    sink = app.source("trades", schema=Trade).sink("out")
    assert not hasattr(sink, "_repr_html_")


def test_a_merge_of_streams_of_another_application_is_refused(app: Application) -> None:
    here = app.source("here", schema=Trade)
    there = Application("other").source("there", schema=Trade)
    with refused("merge of 'here'", "no stream of this application"):
        here.merge(there)


def test_a_merge_of_a_sink_is_refused(app: Application) -> None:
    here = app.source("here", schema=Trade)
    with refused("merge of 'here'", "no stream of this application"):
        here.merge(here.sink("out"))  # type: ignore[arg-type]


def test_a_merge_of_a_keyed_and_a_keyless_stream_names_the_keyless_one(app: Application) -> None:
    keyed = app.source("keyed", schema=Trade, key="symbol")
    keyless = app.source("keyless", schema=Trade)
    for one, other in ((keyed, keyless), (keyless, keyed)):
        with refused("'keyless' has no key; call key_by first"):
            one.merge(other)


def test_a_merge_that_gives_a_stream_twice_is_refused(app: Application) -> None:
    one, other = (app.source(name, schema=Trade) for name in ("one", "other"))
    with refused("merge of 'one'", "'one' is given twice"):
        one.merge(one)
    with refused("'one' is given twice"):
        one.merge(other).merge(one)


def test_merged_streams_of_one_schema_stay_one_schema(app: Application) -> None:
    one, other = app.source("one", schema=Trade), app.source("other", schema=Trade)
    assert one.merge(other).schema == one.schema
    assert one.merge(app.source("quotes", schema=Quote)).schema is None


def test_the_same_streams_can_be_merged_twice(app: Application) -> None:
    one, other = app.source("one", schema=Trade), app.source("other", schema=Trade)
    assert one.merge(other).name != one.merge(other).name


def test_a_merged_stream_can_be_keyed_without_a_name(app: Application) -> None:
    one, other = app.source("one", schema=Trade), app.source("other", schema=Trade)
    assert one.merge(other).key_by("symbol").name == "one-other-by-symbol"


@pytest.mark.parametrize(
    "use",
    [
        lambda stream: stream.map(alert),
        lambda stream: stream.filter(keep),
        lambda stream: stream.flat_map(alerts),
        lambda stream: stream.key_by("symbol", name="by"),
        lambda stream: stream.sink("out", encoder=str),
    ],
)
def test_mixed_schemas_need_a_function_each(app: Application, use: Callable[[Any], Any]) -> None:
    trades, quotes = app.source("trades", schema=Trade), app.source("quotes", schema=Quote)
    with refused("mixes schemas", "trades+quotes"):
        use(trades.merge(quotes))


def test_a_stateful_computation_needs_a_key(app: Application) -> None:
    with refused("stateful 'on_trade': 'trades' has no key; call key_by first"):
        app.source("trades", schema=Trade).stateful(on_trade, state=Seen)


def test_a_state_must_be_something_to_call(app: Application) -> None:
    trades = app.source("trades", schema=Trade, key="symbol")
    with refused("stateful 'on_trade'", "cannot be called; give a class"):
        trades.stateful(on_trade, state=Seen())  # type: ignore[call-overload]


class Market:
    """Two keyed sources to be merged."""

    def __init__(self, app: Application) -> None:
        self.trades = app.source("trades", schema=Trade, key="symbol")
        self.quotes = app.source("quotes", schema=Quote, key="symbol")
        self.other = app.source("other", schema=Trade, key="symbol")


def test_each_merged_stream_needs_a_handler(app: Application) -> None:
    of = Market(app)
    with refused("stateful 'on_trade'", "missing: quotes"):
        of.trades.merge(of.quotes).stateful({of.trades: on_trade}, state=Seen)


def test_a_handler_of_a_stream_that_is_not_merged_is_refused(app: Application) -> None:
    of = Market(app)
    with refused("not merged here: other"):
        of.trades.merge(of.quotes).stateful(
            {of.trades: on_trade, of.quotes: on_quote, of.other: on_trade}, state=Seen
        )


def test_one_function_may_take_all_schemas_of_a_merge(app: Application) -> None:
    of = Market(app)

    def either(message: Trade | Quote, seen: Seen) -> Alert | None:
        return None

    node = of.trades.merge(of.quotes).merge(of.other).stateful(either, state=Seen).node
    assert isinstance(node, Stateful)
    assert {schema.message: function for schema, function in node.handlers.items()} == {
        Trade: either,
        Quote: either,
    }


def test_a_stream_with_a_function_of_its_own_and_that_of_a_merge_is_refused(app: Application) -> None:
    of = Market(app)

    def either(message: Trade | Quote, seen: Seen) -> Alert | None:
        return None

    both = of.trades.merge(of.quotes)
    for handlers in ({both: either, of.trades: on_trade}, {of.trades: on_trade, both: either}):
        with refused("'trades' has two functions, its own and that of a merge; give one"):
            both.stateful(handlers, state=Seen, name="both")


def test_one_function_that_does_not_take_all_schemas_of_a_merge_is_refused(app: Application) -> None:
    of = Market(app)
    with refused("parameter 'trade' is annotated Trade, but gets Quote"):
        of.trades.merge(of.quotes).stateful(on_trade, state=Seen)  # type: ignore[arg-type]


def test_streams_of_one_schema_share_a_function(app: Application) -> None:
    of = Market(app)

    def another(trade: Trade, seen: Seen) -> Alert | None:
        return None

    with refused("'trades' and 'other' have the same schema Trade"):
        of.trades.merge(of.other).stateful({of.trades: on_trade, of.other: another}, state=Seen)
    assert of.trades.merge(of.other).stateful(on_trade, state=Seen).name == "on_trade"


def test_a_merge_of_merges_takes_the_handlers_of_its_innermost_streams(app: Application) -> None:
    of = Market(app)
    both = of.trades.merge(of.quotes).merge(of.other)
    made = both.stateful({of.trades: on_trade, of.quotes: on_quote, of.other: on_trade}, state=Seen, name="x")
    assert isinstance(made.node, Stateful)
    assert {schema.name: function for schema, function in made.node.handlers.items()} == {
        "Trade": on_trade,
        "Quote": on_quote,
    }


def test_a_stateful_computation_is_named_after_its_functions(app: Application) -> None:
    of = Market(app)
    handlers: dict[Any, Any] = {of.trades: on_trade, of.quotes: on_quote}
    assert of.trades.merge(of.quotes).stateful(handlers, state=Seen).name == "on_trade-on_quote"


def test_a_lambda_needs_a_name(app: Application) -> None:
    with refused("a lambda has no name: give name=..."):
        app.source("trades", schema=Trade).filter(lambda _: True)


def test_a_decoder_that_cannot_give_the_schema_is_refused(app: Application) -> None:
    @dataclass
    class Point:
        x: bettong.i32

    with refused("decoder of 'points'", "'d' cannot fill field 'x'"):
        app.source("points", schema=Point, decoder=bettong.packed(">d"))
    with refused("decoder of 'points'", "7 is no function"):
        app.source("points", schema=Point, decoder=bettong.each(7))  # type: ignore[arg-type]
