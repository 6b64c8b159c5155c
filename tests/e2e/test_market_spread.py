"""Market Spread on the whole suite."""

import struct
from collections.abc import Iterator

import pytest

from bettong import metrics
from examples.market_spread_client import MarketSpreadClient
from examples.market_spread_load import DATA, INITIAL_QUOTES, rounds
from examples.market_spread_oracle import Oracle, by_symbol, rejected
from tests.e2e.bare_feed import Answer, feed
from tests.e2e.conftest import RunningSuite, StartSuite
from tests.waiting import eventually

RESULT_BYTES = 59
ORDER = struct.Struct(">BBI6s4sdd21s")


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(True, id="compiled"),
        # In all tests: plain functions give the same in tests/unit/test_examples.py and e2e/test_executors.py.
        pytest.param(False, id="python", marks=pytest.mark.long),
    ],
)
def market(start_suite: StartSuite, request: pytest.FixtureRequest) -> Iterator[RunningSuite]:
    running = start_suite("examples/market_spread/risk_check.py", compiled=request.param)
    with MarketSpreadClient(running.sender) as client:
        client.initial_quotes(INITIAL_QUOTES)
    yield running
    running.suite.stop()


def test_orders_on_all_symbols_are_rejected_for_exactly_the_fifteen_rejecting_ones(
    market: RunningSuite,
) -> None:
    symbols = [line.rjust(4).encode() for line in (DATA / "350-symbols.txt").read_text().split()]
    rejecting = {
        line.split(",")[-1].rjust(4).encode()
        for line in (DATA / "rejected_instruments.csv").read_text().split("\n")[1:]
        if line
    }
    orders = [
        ORDER.pack(1, 1 + index % 2, 7, b"%06d" % index, symbol, 10.0 * index, 1.5, b"20160902-15:47:52.250")
        for index, symbol in enumerate(symbols)
    ]
    answer = feed(market.sender, "orders", "all-symbols", [orders[:100], orders[100:]])
    assert answer == Answer(source="orders", takes_rows=True, acknowledged=2)

    eventually(lambda: market.folded() >= 700, seconds=60)
    found = by_symbol(market.await_bytes("rejected", len(rejecting) * RESULT_BYTES))
    assert len(rejecting) == 15
    assert set(found) == rejecting
    oracle = Oracle()
    oracle.initial_quotes(INITIAL_QUOTES)
    for order in orders:
        oracle.order(*ORDER.unpack(order)[1:])
    assert found == oracle.rejected


def test_undecodable_orders_become_dead_letters_and_their_neighbours_go_on(market: RunningSuite) -> None:
    before = market.folded()
    good = ORDER.pack(1, 1, 7, b"AFTER0", b"INSM", 1.0, 1.0, b"20160902-15:47:52.250")
    feed(market.sender, "orders", "junk", [[b"junk", good, b"\x09" + good[1:]]])
    eventually(lambda: market.folded() == before + 1, seconds=60)
    eventually(lambda: market.all_bytes_of("dead-letters").count(b'"origin":"orders/junk"') == 2, seconds=60)
    dead_letters = market.all_bytes_of("dead-letters")
    assert b'"index":0' in dead_letters
    assert b'"index":2' in dead_letters
    assert b"expected 53" in dead_letters
    eventually(lambda: market.sum(metrics.DEAD_LETTERS) == 2, seconds=60, what="its partition counts them")


def test_generated_load_gives_exactly_the_orders_that_the_oracle_rejects(market: RunningSuite) -> None:
    # What earlier tests of this module have led to must have arrived first.
    market.settle()
    already = by_symbol(market.all_bytes_of("rejected"))
    dead_letters = market.sum(metrics.DEAD_LETTERS)
    load = list(rounds(60_000, seed=7, round_messages=20_000))
    right = rejected(load)
    with MarketSpreadClient(market.sender) as client:
        client.rounds(load)
    expected = {
        symbol: already.get(symbol, []) + right.get(symbol, []) for symbol in already.keys() | right.keys()
    }
    market.settle()
    assert by_symbol(market.all_bytes_of("rejected")) == expected
    assert market.sum(metrics.DEAD_LETTERS) == dead_letters
