"""Rounds of a source that reads a topic: their rests, what is stored of them, and how faults are waited out."""

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
from bettong_sender.service import await_ended
from bettong_sender.source_feed import (
    SMALL_ROUND_BYTES,
    SMALL_ROUND_RECORDS,
    ExternalSource,
    SourceFeed,
    _is_another,
    is_small,
    rest_s,
)
from tests.waiting import eventually

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

    `read_on`: what is sent arrives when the next records are read, and not before. `listed`: whether Redis lists
    the sender.
    """

    records: int
    stopping: asyncio.Event
    read_on: bool
    rounds: list[Round] = field(default_factory=list)
    polled_s: list[float] = field(default_factory=list)
    moved: bool = False
    listed: bool = True
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
        self.moved = True  # as by a receipt that comes meanwhile

    async def send(self, batch: ExternalBatch) -> None:
        self.rounds[-1].records += len(batch.values)
        if self.read_on:
            await asyncio.to_thread(self._next_is_read.acquire, timeout=30)
        self.rounds[-1].sent_s = time.monotonic()
        if len(self.rounds) == ROUNDS:
            self.stopping.set()

    async def all_appended(self) -> None:
        """All that was sent has arrived."""


def feed_of(everything: Rounds) -> SourceFeed:
    """A feed that uses it as whatever it needs."""
    intake = SimpleNamespace(
        status=SimpleNamespace(sources={}, source_lags={}),
        listed_since_s=lambda: 0.0 if everything.listed else None,
    )
    source = ExternalSource(
        source="in",
        transport=bettong.KafkaTopic("t"),
        open_boundary_log=lambda: cast("Any", everything),
        open_reader=lambda: cast("ExternalReader", everything),
        frame_bytes_max=1_000_000,
        batch_records_max=10_000,
    )
    return SourceFeed(source, cast("Any", intake), structlog.stdlib.get_logger())


async def rounds_of(records: int, *, read_on: bool = False, feed: SourceFeed | None = None) -> Rounds:
    """ROUNDS rounds of so many records each."""
    stopping = asyncio.Event()
    found = Rounds(records, stopping, read_on)
    everything = cast("Any", found)
    feed = feed or feed_of(found)
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


@pytest.mark.parametrize(
    ("records", "size", "small"),
    [
        (0, 1, True),
        (SMALL_ROUND_RECORDS - 1, 1, True),
        (SMALL_ROUND_RECORDS, 1, False),
        (3, SMALL_ROUND_BYTES // 4, True),
        (4, SMALL_ROUND_BYTES // 4, False),
    ],
)
def test_a_round_is_small_by_its_records_and_by_their_bytes(records: int, size: int, *, small: bool) -> None:
    half = records // 2
    batches = [ExternalBatch(1, [bytes(size)] * count, 0, []) for count in (half, records - half)]
    assert is_small(batches) is small


def test_a_receipt_that_comes_while_boundaries_are_stored_is_stored_later() -> None:
    found = asyncio.run(rounds_of(1))
    assert found.moved, "what came during the last store is not stored yet"


def test_rounds_that_go_well_before_a_fault_comes_again_do_not_shorten_the_wait() -> None:
    async def pauses_s() -> list[float]:
        feed = feed_of(Rounds(1, asyncio.Event(), read_on=False))
        found = []
        for _ in range(3):
            found.append(feed._backoff.next_s())
            await rounds_of(1, feed=feed)
        return found

    first_s, second_s, third_s = asyncio.run(pauses_s())
    assert first_s < second_s < third_s


@pytest.mark.parametrize("stops", [False, True])
def test_while_redis_does_not_list_the_sender_nothing_is_sent(*, stops: bool) -> None:
    """What is appended while the application may be repartitioned must not be acknowledged."""

    async def conversation() -> Rounds:
        stopping = asyncio.Event()
        found = Rounds(1, stopping, read_on=False, listed=False)
        feed = feed_of(found)
        sources = feed._intake.status.sources
        pumping = asyncio.create_task(
            feed._pump(cast("Any", found), cast("Any", found), {0: cast("Any", found)}, stopping)
        )
        await asyncio.to_thread(eventually, lambda: found.rounds and "reach Redis" in sources["in"])
        assert not found.rounds[0].records
        if stops:
            stopping.set()
        else:
            found.listed = True
        await asyncio.wait_for(pumping, 30)
        assert stops or "in" not in sources
        return found

    found = asyncio.run(asyncio.wait_for(conversation(), 60))
    assert [each.records for each in found.rounds] == ([0] if stops else [1] * ROUNDS)


def test_no_session_is_opened_while_redis_does_not_list_the_sender() -> None:
    async def conversation() -> None:
        stopping = asyncio.Event()
        feed = feed_of(Rounds(1, stopping, read_on=False, listed=False))
        running = asyncio.create_task(feed.run(stopping))
        await asyncio.to_thread(eventually, lambda: "Redis" in feed._intake.status.sources["in"])
        stopping.set()
        await asyncio.wait_for(running, 30)

    asyncio.run(asyncio.wait_for(conversation(), 60))


@pytest.mark.parametrize(
    ("partitions", "identity", "another"),
    [([0], "id-1", False), ([0], "", False), ([0], "id-2", True), ([0, 1], "id-1", True)],
)
def test_a_topic_is_another_by_its_partitions_or_its_id(
    partitions: list[int], identity: str, *, another: bool
) -> None:
    reader = SimpleNamespace(partitions=lambda: partitions, identity=lambda: identity)
    stream = SimpleNamespace(batcher=Batcher(BatchBoundaries(SequenceNumber(0), identity="id-1")))
    assert _is_another(cast("ExternalReader", reader), {0: cast("Any", stream)}) is another


def test_feeds_that_do_not_end_are_cancelled() -> None:
    async def stopped() -> bool:
        never = asyncio.create_task(asyncio.Event().wait())
        soon = asyncio.create_task(asyncio.sleep(0))
        await await_ended(cast("Any", [never, soon]), 0.01)
        await asyncio.wait([never], timeout=30)
        return never.cancelled()

    assert asyncio.run(stopped())


def test_a_feed_that_raises_ends_the_sender_with_what_it_raised() -> None:
    async def stopped() -> None:
        async def mistaken() -> None:
            raise KeyError("a mistake of ours")

        await await_ended([asyncio.create_task(mistaken())], 30)

    with pytest.raises(KeyError, match="a mistake of ours"):
        asyncio.run(stopped())
