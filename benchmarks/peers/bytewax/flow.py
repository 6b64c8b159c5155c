"""What all programs share: a topic of messages, something that is kept of each key, a topic of results."""

import os
from collections.abc import Callable
from typing import TypeVar

import bytewax.operators as op
from bytewax.connectors.kafka import KafkaSink, KafkaSinkMessage, KafkaSource, KafkaSourceMessage
from bytewax.dataflow import Dataflow
from bytewax.operators import KeyedStream

from benchmarks.peers.market import NEW, Market

BROKERS = [os.environ.get("PEER_KAFKA", "")]
_Message = TypeVar("_Message")


def from_topic_to_topic(
    name: str,
    keyed: Callable[[list[KafkaSourceMessage]], list[tuple[str, _Message]]],
    computed: Callable[[KeyedStream[_Message]], KeyedStream[bytes]],
) -> Dataflow:
    """`keyed` gives the messages of a batch of records by key, `computed` the results."""
    flow = Dataflow(name)
    records = op.input("messages", flow, KafkaSource(BROKERS, ["messages"]))
    results = computed(op.flat_map_batch("key", records, keyed))
    records_out = op.map("result", results, lambda pair: KafkaSinkMessage(pair[0].encode(), pair[1]))
    op.output("results", records_out, KafkaSink(BROKERS, "results"))
    return flow


def market_spread(
    name: str,
    keyed: Callable[[list[KafkaSourceMessage]], list[tuple[str, _Message]]],
    step: Callable[[_Message, Market], tuple[Market, bytes | None]],
) -> Dataflow:
    """A market a symbol; `step` is the rule for one message."""

    def check(market: Market | None, message: _Message) -> tuple[Market, list[bytes]]:
        """One message of a symbol."""
        market, result = step(message, NEW if market is None else market)
        return market, [] if result is None else [result]

    return from_topic_to_topic(name, keyed, lambda keyed: op.stateful_flat_map("check", keyed, check))
