"""Numbers of 350 keys, of which one in ten has a result: each partition has some all the time."""

from __future__ import annotations

from benchmarks.lab.keyed_numbers import NumberLoad


def load(messages: int, seed: int) -> NumberLoad:
    """The numbers with their results."""
    return NumberLoad(messages, seed, keys=350, every=10)
