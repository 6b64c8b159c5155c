"""Market Spread by Faust: `python -m faust -A benchmarks.peers.faust.market_spread worker`.

The table is in memory, with a changelog topic: the faster of Faust's stores.
"""

import os

import faust

from benchmarks.peers.market import NEW, step

app = faust.App(
    "market-spread",
    broker=f"kafka://{os.environ['PEER_KAFKA']}",
    store="memory://",
    datadir=os.environ["PEER_STATE"],
    topic_partitions=int(os.environ["PEER_PARTITIONS"]),
    topic_replication_factor=1,
    processing_guarantee="at_least_once",
    broker_commit_interval=1.0,
)
messages = app.topic(
    "messages", key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw"
)
results = app.topic("results", key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw")
markets = app.Table("markets", key_type=str, default=lambda: NEW)


@app.agent(messages)
async def check(stream: faust.Stream[bytes]) -> None:
    """The messages of this worker's partitions."""
    async for key, message in stream.items():
        symbol = key.decode()
        before = markets[symbol]
        market, result = step(message, before)
        if market is not before:
            markets[symbol] = market
        if result is not None:
            await results.send(key=key, value=result)
