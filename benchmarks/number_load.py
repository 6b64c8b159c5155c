"""The load of odd_numbers.py, straight into its stage's log, and what must come out of it."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks import implied_volatility
from benchmarks.log_load import Splitter
from benchmarks.workload import pieces
from bettong.application.nodes.source import Source
from bettong.frames.columns import Array, Columns
from bettong.frames.frame import Frame
from bettong.schema.schema import Schema

APPLICATION = Path(__file__).with_name("odd_numbers.py")
SEED = 1


def numbers(messages: int, *, keys: int, every: int, seed: int = SEED) -> tuple[Array, Array]:
    """Keys by chance, the same for the same seed, and their numbers: one in `every` is odd."""
    chosen = np.random.default_rng(seed).integers(0, keys, messages)
    return chosen, np.where(np.arange(messages) % every == 0, 1, 2)


def all_keys(keys: int) -> tuple[Array, Array]:
    """An even number for each key, so that it has a state; nothing comes of it."""
    return np.arange(keys), np.full(keys, 2)


def frames(
    splitter: Splitter, source: Source, load: tuple[Array, Array], batch: int
) -> Iterator[tuple[int, bytes]]:
    """(partition, frame); `batch` messages are split at a time."""
    for piece in pieces(Columns(source.schema, len(load[0]), load), batch):
        yield from splitter.frames(source, piece, key="key")


def right(chosen: Array, values: Array) -> tuple[int, int]:
    """How many sums are results, and the sum of those, when `all_keys` came before."""
    _, totals = totals_of(chosen, values)
    return len(totals), int(totals.sum())


def totals_of(chosen: Array, values: Array) -> tuple[Array, Array]:
    """The keys of all results, and the sums that they are, when `all_keys` came before."""
    order = np.argsort(chosen, kind="stable")
    keys, added = chosen[order], values[order]
    running = np.cumsum(added)
    begins = np.searchsorted(keys, keys)
    totals = running - running[begins] + added[begins] + 2
    return keys[added == 1], totals[added == 1]


def volatilities_of(chosen: Array, values: Array, *, keys: int) -> tuple[Array, Array]:
    """The same of implied_volatility.py: by its own function, in a plain loop."""
    kept: defaultdict[int, implied_volatility.Guess] = defaultdict(implied_volatility.Guess)
    pairs = zip(all_keys(keys), (chosen, values), strict=True)
    results = [
        implied_volatility.imply(implied_volatility.Number(key, value), kept[key])
        for key, value in zip(*(np.concatenate(pair).tolist() for pair in pairs), strict=True)
    ]
    found = [each for each in results if each is not None]
    return np.array([each.key for each in found]), np.array([each.total for each in found])


def sums(frame: Frame, schema: Schema) -> Array:
    """The sums in a frame of results; none in one without messages."""
    payload = frame.columns
    return np.asarray(Columns.of_payload(schema, payload).columns[1]) if payload is not None else np.arange(0)
