"""Frames on their way to the log, and what comes back, whichever of the threads is first."""

import asyncio
import math
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count
from typing import cast

import pytest

from bettong import Application, each
from bettong.application.nodes.source import Source
from bettong.errors import LogError
from bettong.frames.frame import decode
from bettong.identifiers import SequenceNumber, TopicPartition
from bettong.ingest.refusal import Code, Refusal
from bettong.v1.frame_pb2 import Rows
from bettong.v1.ingest_pb2 import Hello, IngestFrame, IngestRequest, Receipt
from bettong_sender.buffer import FRAME_BYTES, RECORD_BYTES
from bettong_sender.feed import Feed
from bettong_sender.intake import Intake, Limits
from bettong_sender.ownership import Lease
from bettong_sender.status import SenderStatus
from tests.samples.sender import Line, columns_frame, orders, request_taken, route, rows_frame, taken
from tests.samples.sender import source as source_of_orders

LIMITS = Limits(credits=4, sessions_max=8, buffer_bytes_max=1 << 20)


class PromptLog:
    """Answers within the call, while the event loop is busy with something else."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._ends: Counter[TopicPartition] = Counter()

    def append(
        self,
        to: TopicPartition,
        value: bytes,
        on_done: Callable[[int | LogError], None],
        *,
        traceparent: bytes = b"",
    ) -> None:
        """See Log."""
        del value, traceparent
        offset = self._ends[to]
        self._ends[to] += 1
        self._loop.call_soon_threadsafe(threading.Event().wait, 0.05)
        on_done(offset)


def test_a_receipt_counts_the_dead_letters_however_early_the_log_answers() -> None:
    async def conversation() -> Receipt | None:
        intake = Intake("shop", {"orders": route()}, LIMITS, SenderStatus(since_s=1), clock=lambda: 1)
        intake.use(PromptLog(asyncio.get_running_loop()), {})
        feed = intake.open(Hello(source="orders", stream="feed-1"), client="1.2.3.4")
        await feed.open(SequenceNumber(0))
        receipt = asyncio.create_task(feed.receipt())
        await taken(feed, rows_frame(1, orders(range(3)), spoilt=[b"no order"]))
        try:
            return await receipt
        finally:
            feed.close()
            intake.close()

    assert asyncio.run(conversation()) == Receipt(acknowledged=1, credits=1, dead_letters=1)


def test_a_refused_frame_has_no_receipt_whoever_looks_before_the_refusal_is_heard() -> None:
    async def conversation() -> list[Receipt | None]:
        loop = asyncio.get_running_loop()
        reported: list[Receipt | None] = []

        def read() -> IngestFrame:
            """Asked by the splitter before it refuses: the loop is busy until it has, then looks for receipts."""
            loop.call_soon_threadsafe(threading.Event().wait, 0.05)
            loop.call_soon_threadsafe(feed.wake)
            return IngestFrame(sequence=1)

        async def listen() -> None:
            while True:
                reported.append(await feed.receipt())

        intake = Intake("shop", {"orders": route()}, LIMITS, SenderStatus(since_s=1), clock=lambda: 1)
        intake.use(PromptLog(loop), {})
        feed = intake.open(Hello(source="orders", stream="feed-1"), client="1.2.3.4")
        await feed.open(SequenceNumber(0))
        listening = asyncio.create_task(listen())
        await feed._take(read, 0, None)
        with pytest.raises(Refusal) as caught:
            await feed.all_appended()
        assert caught.value.code is Code.INVALID_ARGUMENT
        listening.cancel()
        feed.close()
        intake.close()
        return reported

    assert asyncio.run(conversation()) == []


class SilentLog:
    """Takes so many records and never answers."""

    def __init__(self, takes: float = math.inf) -> None:
        self.values: list[bytes] = []
        self.takes = takes

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
        del to, on_done
        if len(self.values) >= self.takes:
            raise LogError("the disk is full")
        self.values.append(value)

    @property
    def sizes(self) -> list[int]:
        return list(map(len, self.values))


class Certain:
    """A lease that is never in doubt."""

    in_doubt = False

    async def await_renewed(self) -> None:
        """See Lease."""


CERTAIN = cast("Lease", Certain())


class Gate:
    """Where a decoder waits at a row `wait`; what it has decoded."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.open = threading.Event()
        self.decoded: list[bytes] = []

    def decode(self, row: bytes) -> Line:
        if row == b"wait":
            self.reached.set()
            self.open.wait(60)
        self.decoded.append(row)
        return Line(row.decode())


def gated(gate: Gate) -> Source:
    """A source with its decoder."""
    app = Application("shop")
    app.source("orders", schema=Line, decoder=each(gate.decode)).sink("all")
    return app.sources[0]


def request(sequence: int, *rows: bytes) -> bytes:
    return IngestRequest(frame=IngestFrame(sequence=sequence, rows=Rows(messages=rows))).SerializeToString()


@asynccontextmanager
async def intake_of(
    source: Source, *, frame_messages_max: int = 1000
) -> AsyncIterator[tuple[Intake, SilentLog]]:
    routes = {"orders": replace(route(source), frame_messages_max=frame_messages_max)}
    intake = Intake("shop", routes, LIMITS, SenderStatus(since_s=1), clock=lambda: 1)
    log = SilentLog()
    intake.use(log, {})
    try:
        yield intake, log
    finally:
        intake.close()


async def opened(intake: Intake, stream: str, client: str) -> Feed:
    feed = intake.open(Hello(source="orders", stream=stream), client=client)
    await feed.open(SequenceNumber(0))
    return feed


def test_the_topics_that_a_sender_reads_take_no_clients_room() -> None:
    async def conversation() -> str:
        limits = replace(LIMITS, sessions_max=1)
        intake = Intake("shop", {"orders": route()}, limits, SenderStatus(since_s=1), clock=lambda: 1)
        intake.use(SilentLog(), {})
        before = intake.open_external(Hello(source="orders", stream="kafka.trades.0"), "trades")
        client = await opened(intake, "feed-1", "1.2.3.4")
        behind = intake.open_external(Hello(source="orders", stream="kafka.trades.1"), "trades")
        assert intake.status.sessions == 1
        with pytest.raises(Refusal) as caught:
            await opened(intake, "feed-2", "1.2.3.4")
        before.close()
        behind.close()
        client.close()
        assert intake.status.sessions == 0
        (await opened(intake, "feed-3", "1.2.3.4")).close()
        await intake.await_closed(0)
        intake.close()
        return str(caught.value)

    assert "this sender serves 1 sessions (BETTONG_SENDER_SESSIONS_MAX)" in asyncio.run(conversation())


def test_a_frame_of_too_many_messages_is_refused_with_the_limit_before_a_message_is_decoded() -> None:
    gate = Gate()

    async def conversation() -> Refusal:
        async with intake_of(gated(gate), frame_messages_max=100) as (intake, _):
            feed = await opened(intake, "feed-1", "1.2.3.4")
            await request_taken(feed, request(1, *[b"a"] * 100), CERTAIN)
            with pytest.raises(Refusal) as caught:
                await request_taken(feed, request(2, *[b""] * 101), CERTAIN)
            return caught.value

    refusal = asyncio.run(conversation())
    assert refusal.code is Code.RESOURCE_EXHAUSTED
    assert (
        "frame 2 of 'orders/feed-1' has 101 messages, at most 100 are taken (BETTONG_FRAME_MESSAGES_MAX)"
        in str(refusal)
    )
    assert gate.decoded == [b"a"] * 100


def test_columns_of_too_many_messages_are_refused_too() -> None:
    async def conversation() -> str:
        async with intake_of(columns_only := source_of_orders(), frame_messages_max=3) as (intake, _):
            feed = await opened(intake, "feed-1", "1.2.3.4")
            await taken(feed, columns_frame(columns_only, 1, orders(range(3))))
            with pytest.raises(Refusal) as caught:
                await taken(feed, columns_frame(columns_only, 2, orders(range(4))))
            return str(caught.value)

    assert "frame 2 of 'orders/feed-1' has 4 messages, at most 3" in asyncio.run(conversation())


def test_a_client_with_much_to_do_holds_up_another_for_one_frame() -> None:
    """However many sessions it opens, and however much they have sent."""
    gate = Gate()

    async def conversation() -> None:
        async with intake_of(gated(gate)) as (intake, _):
            busy = [await opened(intake, f"busy-{number}", "busy") for number in range(4)]
            small = await opened(intake, "small", "small")
            tasks = [asyncio.create_task(request_taken(busy[0], request(1, b"wait"), CERTAIN))]
            await asyncio.to_thread(gate.reached.wait, 60)
            tasks += [
                asyncio.create_task(request_taken(each, request(1, b"busy"), CERTAIN)) for each in busy[1:]
            ]
            await asyncio.sleep(0)
            tasks.append(asyncio.create_task(request_taken(small, request(1, b"small"), CERTAIN)))
            await asyncio.sleep(0)
            gate.open.set()
            await asyncio.gather(*tasks)

    asyncio.run(conversation())
    assert gate.decoded.index(b"small") <= 2


def test_a_busy_splitter_is_not_taken_for_a_silent_log() -> None:
    gate = Gate()

    async def conversation() -> None:
        clock = asyncio.get_running_loop().time
        async with intake_of(gated(gate)) as (intake, _):
            feed = await opened(intake, "feed-1", "1.2.3.4")
            assert intake.progress.silent_s(clock() + 9) > 8
            intake.progress.remove_pending()
            task = asyncio.create_task(request_taken(feed, request(1, b"wait"), CERTAIN))
            await asyncio.to_thread(gate.reached.wait, 60)
            origin, seconds = intake.progress.longest_frame(clock() + 9)
            assert origin == "orders/feed-1"
            assert seconds > 8
            assert intake.progress.silent_s(clock() + 9) == 0
            gate.open.set()
            await task
            assert intake.progress.longest_frame(clock())[0] == ""
            assert intake.progress.silent_s(clock() + 9) > 8

    asyncio.run(conversation())


def test_the_buffer_counts_what_frames_and_records_cost_beside_their_bytes() -> None:
    gate = Gate()

    async def conversation() -> None:
        async with intake_of(gated(gate)) as (intake, log):
            feed = await opened(intake, "feed-1", "1.2.3.4")
            assert intake.buffer.bytes == sum(log.sizes) + len(log.sizes) * RECORD_BYTES
            before = intake.buffer.bytes
            task = asyncio.create_task(request_taken(feed, data := request(1, b"wait"), CERTAIN))
            await asyncio.sleep(0)
            assert intake.buffer.bytes == before + len(data) + FRAME_BYTES
            gate.open.set()
            await task
            assert intake.buffer.bytes == sum(log.sizes) + len(log.sizes) * RECORD_BYTES

    asyncio.run(conversation())


def test_a_decoder_that_stands_still_holds_up_no_other_source() -> None:
    """Nor does what waits for it: of the bytes that a sender holds, a source has its share."""
    gate = Gate()
    app = Application("shop")
    stuck = app.source("stuck", schema=Line, decoder=each(gate.decode))
    quick = app.source("quick", schema=Line, decoder=each(lambda row: Line(row.decode())))
    stuck.merge(quick).sink("all")

    async def conversation() -> tuple[list[int], str]:
        routes = {source.name: route(source) for source in app.sources}
        limits = replace(LIMITS, sessions_max=9, buffer_bytes_max=64 * 1024)
        intake = Intake("shop", routes, limits, SenderStatus(since_s=1), clock=lambda: 1)
        intake.use(PromptLog(asyncio.get_running_loop()), {})
        stuck_feeds = [intake.open(Hello(source="stuck", stream=f"s{each}"), client="a") for each in range(8)]
        for feed in stuck_feeds:
            await feed.open(SequenceNumber(0))
        waiting = [
            asyncio.create_task(request_taken(feed, request(1, b"wait", b"x" * 10_000), CERTAIN))
            for feed in stuck_feeds
        ]
        await asyncio.to_thread(gate.reached.wait, 60)
        feed = intake.open(Hello(source="quick", stream="q"), client="b")
        await feed.open(SequenceNumber(0))
        acknowledged = []
        for sequence in (1, 2, 3):
            await request_taken(feed, request(sequence, b"y" * 5_000), CERTAIN)
            receipt = await feed.receipt()
            acknowledged.append(receipt.acknowledged if receipt is not None else 0)
        assert not any(task.done() for task in waiting)
        busy, _ = intake.progress.longest_frame(0)
        gate.open.set()
        await asyncio.gather(*waiting)
        intake.close()
        return acknowledged, busy

    acknowledged, busy = asyncio.run(asyncio.wait_for(conversation(), 60))
    assert acknowledged == [1, 2, 3]
    assert busy.startswith("stuck/")


def test_the_logs_order_is_that_of_the_ingest_times_whatever_the_splitters_do() -> None:
    """Two sources of one stage: their frames are decoded side by side, and stamped as they are appended."""
    app = Application("shop")
    sources = [
        app.source(name, schema=Line, decoder=each(lambda row: Line(row.decode()))) for name in ("a", "b")
    ]
    sources[0].merge(sources[1]).sink("all")
    ticks = count(1)

    async def conversation() -> list[int]:
        intake = Intake(
            "shop",
            {source.name: route(source) for source in app.sources},
            replace(LIMITS, sessions_max=2),
            SenderStatus(since_s=1),
            clock=lambda: next(ticks),
        )
        log = SilentLog()
        intake.use(log, {})
        feeds = [intake.open(Hello(source=source.name, stream="x"), client="a") for source in sources]
        for feed in feeds:
            await feed.open(SequenceNumber(0))
        for sequence in range(1, 5):
            await asyncio.gather(*(request_taken(feed, request(sequence, b"x"), CERTAIN) for feed in feeds))
        intake.close()
        return [decode(value).ingest_ns for value in log.values]

    stamps = asyncio.run(conversation())
    assert len(stamps) >= 10
    assert stamps == sorted(stamps)
