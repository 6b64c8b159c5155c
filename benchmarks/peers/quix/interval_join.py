"""The interval join by Quix Streams, which reads both topics in the order of their records' timestamps."""

from typing import Any

from benchmarks.peers.events import BOUND_MS, LEFT, PAIR, RIGHT
from benchmarks.peers.quix.application import application, results, values

# What is kept beyond the bound, for a partner that is read late.
GRACE_MS = 10 * BOUND_MS


def pack(pair: tuple[int, int], key: bytes, _timestamp: int, _headers: Any) -> bytes:
    """A pair of a key."""
    return PAIR.pack(int(key), *pair)


app = application("interval-join")
pairs = values(app, LEFT).join_interval(
    values(app, RIGHT),
    on_merge=lambda left, right: (left, right),
    grace_ms=GRACE_MS,
    backward_ms=BOUND_MS,
    forward_ms=BOUND_MS,
)
pairs.apply(pack, metadata=True).to_topic(results(app))

if __name__ == "__main__":
    app.run()
