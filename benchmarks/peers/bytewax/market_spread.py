"""Market Spread by bytewax: `python -m bytewax.run benchmarks.peers.bytewax.market_spread`."""

from bytewax.connectors.kafka import KafkaSourceMessage

from benchmarks.peers.bytewax.flow import market_spread
from benchmarks.peers.market import step


def keyed(records: list[KafkaSourceMessage]) -> list[tuple[str, bytes]]:
    """A message a record."""
    return [(record.key.decode(), record.value) for record in records]


flow = market_spread("market-spread", keyed, step)
