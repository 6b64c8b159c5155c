"""Market Spread by bytewax: `python -m bytewax.run benchmarks.peers.bytewax.program`."""

import os

import bytewax.operators as op
from bytewax.connectors.kafka import KafkaSink, KafkaSinkMessage, KafkaSource, KafkaSourceMessage
from bytewax.dataflow import Dataflow

from benchmarks.peers.market import NEW, Market, step

BROKERS = [os.environ["PEER_KAFKA"]]


def keyed(messages: list[KafkaSourceMessage]) -> list[tuple[str, bytes]]:
    """A batch of records by symbol."""
    return [(message.key.decode(), message.value) for message in messages]


def check(market: Market | None, message: bytes) -> tuple[Market, list[bytes]]:
    """One message of a symbol."""
    market, result = step(message, NEW if market is None else market)
    return market, [] if result is None else [result]


flow = Dataflow("market-spread")
messages = op.input("messages", flow, KafkaSource(BROKERS, ["messages"]))
by_symbol = op.flat_map_batch("key", messages, keyed)
rejected = op.stateful_flat_map("check", by_symbol, check)
results = op.map("result", rejected, lambda pair: KafkaSinkMessage(pair[0].encode(), pair[1]))
op.output("results", results, KafkaSink(BROKERS, "results"))
