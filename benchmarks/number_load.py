"""The load of odd_numbers.py, straight into its stage's log, and what must come out of it."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.log_load import Splitter
from benchmarks.workload import pieces
from bettong.application.nodes.source import Source
from bettong.frames.columns import Array, Columns
from bettong.frames.frame import Frame
from bettong.schema.schema import Schema

APPLICATION = Path(__file__).with_name("odd_numbers.py")


def numbers(messages: int, *, keys: int, every: int) -> tuple[Array, Array]:
    """Keys by chance, always the same, and their numbers: one in `every` is odd."""
    chosen = np.random.default_rng(1).integers(0, keys, messages)
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
    order = np.argsort(chosen, kind="stable")
    keys, added = chosen[order], values[order]
    running = np.cumsum(added)
    begins = np.searchsorted(keys, keys)
    totals = (running - running[begins] + added[begins] + 2)[added == 1]
    return len(totals), int(totals.sum())


def sums(frame: Frame, schema: Schema) -> Array:
    """The sums in a frame of results; none in one without messages."""
    payload = frame.columns
    return np.asarray(Columns.of_payload(schema, payload).columns[1]) if payload is not None else np.arange(0)
