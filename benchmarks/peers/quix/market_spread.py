"""Market Spread by Quix Streams."""

from quixstreams import State

from benchmarks.peers.market import NEW, step
from benchmarks.peers.quix.application import application, messages, results

app = application("market-spread")


def check(message: bytes, state: State) -> bytes | None:
    """One message of a symbol. State is written only where it has changed."""
    before = state.get("market", NEW)
    market, result = step(message, before)
    if market is not before:
        state.set("market", market)
    return result


rejected = messages(app).apply(check, stateful=True)
rejected = rejected[rejected.apply(lambda result: result is not None)]
rejected.to_topic(results(app))

if __name__ == "__main__":
    app.run()
