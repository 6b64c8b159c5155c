"""The flow of both programs: a topic of messages, a market a symbol, a topic of results."""

import os
from collections.abc import Callable
from typing import TypeVar

import bytewax.operators as op
from bytewax.connectors.kafka import KafkaSink, KafkaSinkMessage, KafkaSource, KafkaSourceMessage
from bytewax.dataflow import Dataflow

from benchmarks.peers.market import NEW, Market

BROKERS = [os.environ["PEER_KAFKA"]]
_Message = TypeVar("_Message")


def market_spread(
    name: str,
    keyed: Callable[[list[KafkaSourceMessage]], list[tuple[str, _Message]]],
    step: Callable[[_Message, Market], tuple[Market, bytes | None]],
) -> Dataflow:
    """`keyed` gives the messages of a batch of records by symbol, `step` is the rule for one of them."""

    def check(market: Market | None, message: _Message) -> tuple[Market, list[bytes]]:
        """One message of a symbol."""
        market, result = step(message, NEW if market is None else market)
        return market, [] if result is None else [result]

    flow = Dataflow(name)
    records = op.input("messages", flow, KafkaSource(BROKERS, ["messages"]))
    by_symbol = op.flat_map_batch("key", records, keyed)
    rejected = op.stateful_flat_map("check", by_symbol, check)
    results = op.map("result", rejected, lambda pair: KafkaSinkMessage(pair[0].encode(), pair[1]))
    op.output("results", results, KafkaSink(BROKERS, "results"))
    return flow
