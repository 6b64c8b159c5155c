"""Rounds of a source that reads a topic: a small one is followed by a rest, a large one by none."""

import asyncio
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
import structlog

import bettong
from bettong.edges.external_reader import ExternalReader, ExternalRecords
from bettong.identifiers import SequenceNumber
from bettong_sender.batcher import BatchBoundaries, Batcher, ExternalBatch
from bettong_sender.source_feed import SMALL_ROUND_RECORDS, ExternalSource, SourceFeed, rest_s

STORING_S = 0.02
ROUNDS = 4


@dataclass
class Round:
    """When one began to be stored, and was sent, in seconds; with how many records."""

    stored_s: float
    sent_s: float = 0.0
    records: int = 0


@dataclass
class Rounds:
    """A topic that always has the next records, a store that takes its time, and a stream: all in one.

    `read_on`: what is sent arrives when the next records are read, and not before.
    """

    records: int
    stopping: asyncio.Event
    read_on: bool
    rounds: list[Round] = field(default_factory=list)
    polled_s: list[float] = field(default_factory=list)
    moved: bool = False
    batcher: Batcher = field(default_factory=lambda: Batcher(BatchBoundaries(SequenceNumber(0))))
    _next: int = 0
    _next_is_read: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def poll(self, _timeout_ms: int, _records_max: int) -> dict[int, ExternalRecords]:
        self.polled_s.append(time.monotonic())
        if len(self.polled_s) > 1:
            self._next_is_read.release()
        first, self._next = self._next, self._next + self.records
        offsets = list(range(first, self._next))
        return {0: ExternalRecords(offsets, [1] * len(offsets), [b"x"] * len(offsets))}

    def position(self, _partition: int) -> int:
        return self._next

    def lag(self) -> int:
        return 0

    def append(self, _outgoing: Sequence[object], _positions: Mapping[bytes, bytes]) -> None:
        self.rounds.append(Round(time.monotonic()))
        threading.Event().wait(STORING_S)

    async def send(self, batch: ExternalBatch) -> None:
        self.rounds[-1].records += len(batch.values)
        if self.read_on:
            await asyncio.to_thread(self._next_is_read.acquire, timeout=30)
        self.rounds[-1].sent_s = time.monotonic()
        if len(self.rounds) == ROUNDS:
            self.stopping.set()


async def rounds_of(records: int, *, read_on: bool = False) -> Rounds:
    """ROUNDS rounds of so many records each."""
    stopping = asyncio.Event()
    found = Rounds(records, stopping, read_on)
    status = SimpleNamespace(sources={}, source_lags={})
    source = ExternalSource(
        source="in",
        transport=bettong.KafkaTopic("t"),
        open_boundary_log=lambda: cast("Any", found),
        open_reader=lambda: cast("ExternalReader", found),
        frame_bytes_max=1_000_000,
        batch_records_max=10_000,
    )
    feed = SourceFeed(source, cast("Any", SimpleNamespace(status=status)), structlog.stdlib.get_logger())
    everything = cast("Any", found)
    await asyncio.wait_for(feed._pump(everything, everything, {0: everything}, stopping), 30)
    return found


def test_a_small_round_is_followed_by_a_rest_as_long_as_it_took() -> None:
    found = asyncio.run(rounds_of(SMALL_ROUND_RECORDS - 1))
    for done, next_polled_s in zip(found.rounds, found.polled_s[1:], strict=False):
        assert done.records == SMALL_ROUND_RECORDS - 1
        took_s = done.sent_s - done.stored_s
        assert next_polled_s - done.sent_s >= min(took_s, rest_s(1)) * 0.9
    assert len(found.rounds) == ROUNDS


def test_behind_a_large_round_the_next_is_read_while_it_is_sent() -> None:
    found = asyncio.run(rounds_of(SMALL_ROUND_RECORDS, read_on=True))
    for done, next_polled_s in zip(found.rounds, found.polled_s[1:], strict=False):
        assert next_polled_s - done.stored_s >= STORING_S * 0.9
    assert len(found.rounds) == ROUNDS


@pytest.mark.parametrize(("took_s", "rests_s"), [(0.0, 0.0), (0.004, 0.004), (3.0, 0.05)])
def test_a_rest_is_as_long_as_the_round_and_bounded(took_s: float, rests_s: float) -> None:
    assert rest_s(took_s) == rests_s
