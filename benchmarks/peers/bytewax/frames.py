"""Market Spread by bytewax out of Bettong's frames: `python -m bytewax.run benchmarks.peers.bytewax.frames`.

Frames are read as Bettong reads them; what is measured is what comes behind.
"""

from bytewax.connectors.kafka import KafkaSourceMessage

from benchmarks.peers.bytewax.flow import market_spread
from benchmarks.peers.frame_rows import symbols_and_rows
from benchmarks.peers.market import Row, step_row


def keyed(records: list[KafkaSourceMessage]) -> list[tuple[str, Row]]:
    """Thousands of messages a record."""
    return [(symbol.decode(), row) for record in records for symbol, row in symbols_and_rows(record.value)]


flow = market_spread("market-spread-frames", keyed, step_row)
