"""Numbers of 350 keys; one in ten has a result, so that each partition has results all the time."""

from __future__ import annotations

from benchmarks.lab.keyed_numbers import NumberLoad


def load(messages: int, seed: int) -> NumberLoad:
    """The numbers, with their expected results."""
    return NumberLoad(messages, seed, keys=350, every=10)
