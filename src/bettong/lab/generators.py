"""What loads are made of: keys of which some come more often, messages out of order, a mix of sources. Pure.

The run file's table `load` has them without code; a load in Python calls them:

    drawn = np.random.default_rng(seed)
    keys = skewed(messages, keys=350, skew=1.1, drawn=drawn)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bettong.frames.columns import Array


def skewed(count: int, *, keys: int, skew: float, drawn: np.random.Generator) -> Array:
    """So many keys from 0 to `keys` - 1, key n in proportion to 1 / (n + 1) ** skew (Zipf's law); 0: all as often."""
    if not skew:
        chosen: Array = drawn.integers(keys, size=count)
        return chosen
    return weighed(count, 1.0 / np.arange(1, keys + 1) ** skew, drawn=drawn)


def weighed(count: int, weights: Sequence[float] | Array, *, drawn: np.random.Generator) -> Array:
    """So many indexes of weights, each in proportion to its weight."""
    bounds = np.cumsum(weights)
    chosen: Array = np.searchsorted(bounds[:-1], drawn.random(count) * bounds[-1], side="right")
    return chosen


def disordered(times_ns: Array, *, within_ns: int, drawn: np.random.Generator) -> Array:
    """In which order messages of these event times come when each is late by chance, by `within_ns` at most: indexes.

    So none is older by more than `within_ns` than one before it, which is what `out_of_order` of a source allows.
    """
    late_ns = drawn.integers(within_ns, size=len(times_ns), endpoint=True)
    order: Array = np.argsort(times_ns + late_ns, kind="stable")
    return order


def shares(messages: int, weights: Sequence[float]) -> list[int]:
    """How many of all messages each gets, in proportion to its weight; together they are `messages`."""
    reached = np.cumsum(weights)
    bounds = np.rint(reached / reached[-1] * messages).astype(int)
    return [int(each) for each in np.diff(bounds, prepend=0)]
