"""Numbers of a million keys; one in a thousand has a result."""

from __future__ import annotations

from benchmarks.lab.keyed_numbers import NumberLoad


def load(messages: int, seed: int) -> NumberLoad:
    """The numbers, with their expected results."""
    return NumberLoad(messages, seed, keys=1_000_000, every=1000)
