"""Building blocks of loads: skewed keys, messages out of order, a mix of sources. Pure.

The run file's table `load` uses them without code; a load in Python calls them:

    drawn = np.random.default_rng(seed)
    keys = skewed(messages, keys=350, skew=1.1, drawn=drawn)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bettong.frames.columns import Array


def skewed(count: int, *, keys: int, skew: float, drawn: np.random.Generator) -> Array:
    """`count` keys from 0 to `keys` - 1, key n in proportion to 1 / (n + 1) ** skew (Zipf's law); 0: uniformly."""
    if not skew:
        chosen: Array = drawn.integers(keys, size=count)
        return chosen
    return weighed(count, 1.0 / np.arange(1, keys + 1) ** skew, drawn=drawn)


def weighed(count: int, weights: Sequence[float] | Array, *, drawn: np.random.Generator) -> Array:
    """`count` indexes into `weights`, each drawn in proportion to its weight."""
    bounds = np.cumsum(weights)
    chosen: Array = np.searchsorted(bounds[:-1], drawn.random(count) * bounds[-1], side="right")
    return chosen


def disordered(times_ns: Array, *, within_ns: int, drawn: np.random.Generator) -> Array:
    """The order in which messages of these event times arrive if each is late at random, by `within_ns` at most.

    As indexes. No message is older by more than `within_ns` than one before it, as `out_of_order` of a source allows.
    """
    late_ns = drawn.integers(within_ns, size=len(times_ns), endpoint=True)
    order: Array = np.argsort(times_ns + late_ns, kind="stable")
    return order


def shares(messages: int, weights: Sequence[float]) -> list[int]:
    """How many of all messages each source gets, in proportion to its weight; their sum is `messages`."""
    reached = np.cumsum(weights)
    bounds = np.rint(reached / reached[-1] * messages).astype(int)
    return [int(each) for each in np.diff(bounds, prepend=0)]
