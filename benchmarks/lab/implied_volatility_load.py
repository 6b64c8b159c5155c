"""Option prices of 10,000 keys; one in a thousand has a result."""

from __future__ import annotations

from functools import partial

from benchmarks.lab.keyed_numbers import NumberLoad
from benchmarks.number_load import volatilities_of

KEYS = 10_000


def load(messages: int, seed: int) -> NumberLoad:
    """The prices, with their expected results."""
    results = partial(volatilities_of, keys=KEYS)
    return NumberLoad(messages, seed, keys=KEYS, every=1000, sink="volatilities", results=results)
