"""TICKs on their way through the intake to the log, and what the sender says of them."""

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

from bettong import metrics
from bettong.errors import LogError
from bettong.frames.frame import Frame, FrameKind, decode
from bettong.identifiers import SequenceNumber, TopicPartition
from bettong.ingest.session import SourceRoute
from bettong.v1.ingest_pb2 import Hello
from bettong_sender.feed import Feed
from bettong_sender.intake import Intake, Limits
from bettong_sender.status import SenderStatus
from bettong_sender.tick_writer import TickWriter
from tests.samples.sender import PARTITIONS, readings, readings_frame, sensor_of, taken

NOW_NS = 1_700_000_000 * 1_000_000_000
S_NS = 1_000_000_000
# None has passed since the last frame: partitions that got one are left alone only with a longer tick.
TICK_S = 0.0
LIMITS = Limits(credits=4, sessions_max=8, buffer_bytes_max=1 << 20)


class ListedLog:
    """Answers at once, from the appending thread; keeps what it took. With `fault` it answers that.

    While it `holds`, it takes nothing, and leaves the answers to the test.
    """

    def __init__(self) -> None:
        self.records: list[tuple[int, Frame]] = []
        self.fault: LogError | None = None
        self.refuses = False
        self.holds = False
        self.held: list[tuple[int, Callable[[int | LogError], None]]] = []
        self.has_ticks = threading.Event()  # one for each partition that got no frame
        self._ends: Counter[int] = Counter()

    def append(
        self,
        to: TopicPartition,
        value: bytes,
        on_done: Callable[[int | LogError], None],
        *,
        traceparent: bytes = b"",
    ) -> None:
        """See Log."""
        assert not traceparent
        if self.refuses:
            raise LogError("it is closed")
        if self.fault is not None:
            on_done(self.fault)
            return
        if self.holds:
            self.held.append((to.partition, on_done))
            return
        self.records.append((to.partition, decode(value)))
        if len(self.ticks()) == PARTITIONS - 1:
            self.has_ticks.set()
        self._ends[to.partition] += 1
        on_done(self._ends[to.partition])

    def ticks(self) -> dict[int, Frame]:
        """By partition; one each at most."""
        found = [(partition, frame) for partition, frame in self.records if frame.kind is FrameKind.TICK]
        assert len(dict(found)) == len(found)
        return dict(found)


@asynccontextmanager
async def sender_of(
    *routes: SourceRoute, tick_s: float = TICK_S
) -> AsyncIterator[tuple[Intake, ListedLog, TickWriter]]:
    intake = Intake(
        "shop",
        {route.source.name: route for route in routes},
        LIMITS,
        SenderStatus(since_s=1),
        clock=lambda: NOW_NS,
    )
    intake.use(log := ListedLog(), {})
    try:
        yield intake, log, TickWriter(intake, tick_s)
    finally:
        intake.close()


async def fed(intake: Intake, *values: tuple[int, int], stream: str = "feed") -> Feed:
    """A feed of one frame that is in the log."""
    feed = intake.open(Hello(source="orders", stream=stream), client="1.2.3.4")
    await feed.open(SequenceNumber(0))
    await taken(feed, readings_frame(1, *values))
    while feed.acknowledged < 1:
        await feed.receipt()
    return feed


def test_ticks_come_to_the_log_with_its_clock_and_are_counted() -> None:
    async def conversation() -> None:
        async with sender_of(readings()) as (intake, log, ticking):
            await fed(intake, (sensor_of(0), NOW_NS - 5 * S_NS))
            await ticking.tick()
            await ticking.tick()
            ticks = log.ticks()
            assert ticks.keys() == set(range(1, PARTITIONS))
            assert {frame.ingest_ns for frame in ticks.values()} == {NOW_NS}
            assert [frame.watermarks for frame in ticks.values()] == [{"orders/feed": NOW_NS - 5 * S_NS}] * 3
            reported = intake.status.metrics()
            assert reported[metrics.TICKS.name] == PARTITIONS - 1
            assert reported[f"{metrics.WATERMARK_LAG.name}/orders"] == 5.0
            assert intake.buffer.bytes == 0
            assert intake.progress.silent_s(asyncio.get_running_loop().time() + 9) == 0

    asyncio.run(conversation())


def test_they_are_written_every_tick_while_the_sender_runs() -> None:
    async def conversation() -> None:
        async with sender_of(readings(), tick_s=0.01) as (intake, log, ticking):
            running = asyncio.create_task(ticking.run())
            await fed(intake, (sensor_of(0), 50))
            await asyncio.to_thread(log.has_ticks.wait, 60)
            running.cancel()
            assert log.ticks().keys() == set(range(1, PARTITIONS))

    asyncio.run(conversation())


def test_a_source_whose_stage_needs_no_time_is_never_reported() -> None:
    async def conversation() -> None:
        route = replace(readings(), needs_time=False)
        async with sender_of(route, tick_s=0.001) as (intake, log, ticking):
            feed = await fed(intake, (sensor_of(0), 50))
            await ticking.tick()
            assert feed.origin_progress is None
            assert not log.ticks()
            assert metrics.WATERMARK_LAG.name not in "".join(intake.status.metrics())

    asyncio.run(conversation())


def test_what_the_log_fails_is_reported_when_there_is_another_one() -> None:
    async def conversation() -> None:
        async with sender_of(readings()) as (intake, log, ticking):
            await fed(intake, (sensor_of(0), 50))
            log.fault = LogError("no answer")
            await ticking.tick()
            log.fault, log.refuses = None, True
            await ticking.tick()
            intake.go_without("waiting for Kafka")
            await ticking.tick()
            assert intake.status.ticks == 0
            intake.use(after := ListedLog(), {})
            await ticking.tick()
            assert after.ticks().keys() == set(range(1, PARTITIONS))
            assert intake.status.ticks == PARTITIONS - 1

    asyncio.run(conversation())


def test_a_partition_with_a_frame_behind_one_that_was_lost_gets_a_report_of_what_came_before_both() -> None:
    async def conversation() -> None:
        async with sender_of(readings()) as (intake, log, ticking):
            feed = await fed(intake, (sensor_of(0), 50), (sensor_of(1), 40))
            log.holds = True
            for sequence, at in ((2, 60), (3, 70)):
                await taken(feed, readings_frame(sequence, (sensor_of(2), at)))
            assert [partition for partition, _ in log.held][-2:] == [2, 2]
            for offset, (_, on_done) in enumerate(log.held):
                on_done(LogError("no answer") if offset == len(log.held) - 2 else 10 + offset)
            log.holds = False
            await asyncio.sleep(0)  # the answers are heard
            assert feed._failure is not None
            await ticking.tick()
            assert {where: frame.watermarks for where, frame in log.ticks().items()} == {
                partition: {"orders/feed": 50} for partition in (2, 3)
            }

    asyncio.run(conversation())


def test_frames_go_first_while_the_buffer_is_full() -> None:
    async def conversation() -> None:
        async with sender_of(readings()) as (intake, log, ticking):
            await fed(intake, (sensor_of(0), 50))
            intake.buffer.add(LIMITS.buffer_bytes_max)
            await ticking.tick()
            assert not log.ticks()
            intake.buffer.remove(LIMITS.buffer_bytes_max)
            await ticking.tick()
            assert log.ticks()

    asyncio.run(conversation())


def test_a_call_that_ended_is_still_reported_and_a_stream_that_ended_is_not() -> None:
    async def conversation() -> None:
        async with sender_of(readings()) as (intake, log, ticking):
            (await fed(intake, (sensor_of(0), 50), stream="comes-back")).close()
            gone = await fed(intake, (sensor_of(0), 60), stream="gone")
            await gone.end(kept=False)
            gone.close()
            await ticking.tick()
            assert [frame.watermarks for frame in log.ticks().values()] == [{"orders/comes-back": 50}] * 3
            await ticking.tick()
            assert len(intake.ticker) == 0

    asyncio.run(conversation())


def test_a_stream_that_ends_is_ended_where_ticks_reported_it() -> None:
    async def conversation() -> None:
        async with sender_of(readings()) as (intake, log, ticking):
            feed = await fed(intake, (sensor_of(0), 50))
            await ticking.tick()
            await feed.end(kept=True)
            ends = [partition for partition, frame in log.records if frame.kind is FrameKind.END]
            assert ends == list(range(PARTITIONS))

    asyncio.run(conversation())
