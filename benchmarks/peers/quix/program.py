"""Market Spread by Quix Streams. State lies in RocksDB, with a changelog topic."""

import os

from quixstreams import Application, State

from benchmarks.peers.market import NEW, step

app = Application(
    broker_address=os.environ["PEER_KAFKA"],
    consumer_group="market-spread",
    auto_offset_reset="earliest",
    processing_guarantee="exactly-once",
    commit_interval=1.0,
    state_dir=os.environ["PEER_STATE"],
    loglevel="WARNING",
)
messages = app.topic("messages", key_deserializer="bytes", value_deserializer="bytes")
results = app.topic("results", key_serializer="bytes", value_serializer="bytes")


def check(message: bytes, state: State) -> bytes | None:
    """One message of a symbol. State is written only where it has changed."""
    before = state.get("market", NEW)
    market, result = step(message, before)
    if market is not before:
        state.set("market", market)
    return result


rejected = app.dataframe(messages).apply(check, stateful=True)
rejected = rejected[rejected.apply(lambda result: result is not None)]
rejected.to_topic(results)

if __name__ == "__main__":
    app.run()
