"""Market Spread by bytewax out of Bettong's frames: `python -m bytewax.run benchmarks.peers.bytewax.frames`.

Frames are read as Bettong reads them; what is measured is what comes behind.
"""

import os

import bytewax.operators as op
from bytewax.connectors.kafka import KafkaSink, KafkaSinkMessage, KafkaSource, KafkaSourceMessage
from bytewax.dataflow import Dataflow

from benchmarks.peers.market import NEW, Market, Row, step_row
from benchmarks.workload import planned
from bettong.frames.columns import Columns
from bettong.frames.frame import decode

BROKERS = [os.environ["PEER_KAFKA"]]
SCHEMAS = {source.name: source.schema for source in planned().sources}


def keyed(records: list[KafkaSourceMessage]) -> list[tuple[str, Row]]:
    """The messages of some records by symbol."""
    found: list[tuple[str, Row]] = []
    for record in records:
        frame = decode(record.value)
        schema = SCHEMAS[frame.stream]
        symbol = schema.position("symbol")
        columns = Columns.of_payload(schema, frame.columns).columns
        rows = zip(*(column.tolist() for column in columns), strict=True)
        found += [(row[symbol].decode(), row) for row in rows]
    return found


def check(market: Market | None, row: Row) -> tuple[Market, list[bytes]]:
    """One message of a symbol."""
    market, result = step_row(row, NEW if market is None else market)
    return market, [] if result is None else [result]


flow = Dataflow("market-spread-frames")
records = op.input("frames", flow, KafkaSource(BROKERS, ["messages"]))
by_symbol = op.flat_map_batch("key", records, keyed)
rejected = op.stateful_flat_map("check", by_symbol, check)
results = op.map("result", rejected, lambda pair: KafkaSinkMessage(pair[0].encode(), pair[1]))
op.output("results", results, KafkaSink(BROKERS, "results"))
