"""Queues of a sender that are filled, and what its live record says of them."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from bettong import Application, each
from bettong.application.nodes.source import Source
from bettong.errors import LogError
from bettong.identifiers import SequenceNumber, TopicPartition
from bettong.ingest.session import SourceRoute
from bettong.queued import NAMED_MAX, ClientCredits, clients_in
from bettong.v1.frame_pb2 import Rows
from bettong.v1.ingest_pb2 import Hello, IngestFrame
from bettong_sender.feed import Feed
from bettong_sender.intake import Intake, Limits
from bettong_sender.queues import queue_values
from bettong_sender.status import SenderStatus
from tests.samples.sender import Line, orders, route, rows_frame, taken
from tests.waiting import eventually

LIMITS = Limits(credits=4, sessions_max=64, buffer_bytes_max=1 << 20)


class SlowLog:
    """Takes records, and answers for all of them when it is told to."""

    def __init__(self) -> None:
        self._waiting: list[Callable[[int | LogError], None]] = []

    def append(
        self,
        to: TopicPartition,
        value: bytes,
        on_done: Callable[[int | LogError], None],
        *,
        traceparent: bytes = b"",
    ) -> None:
        """See Log."""
        del to, value, traceparent
        self._waiting.append(on_done)

    def answer(self) -> None:
        waiting, self._waiting = self._waiting, []
        for number, on_done in enumerate(waiting):
            on_done(number)


def with_intake(
    routes: Mapping[str, SourceRoute],
    work: Callable[[Intake, SlowLog], Awaitable[None]],
    limits: Limits = LIMITS,
) -> None:
    async def run() -> None:
        intake = Intake("shop", routes, limits, SenderStatus(since_s=1), clock=lambda: 1)
        intake.use(log := SlowLog(), {})
        try:
            await work(intake, log)
        finally:
            intake.close()

    asyncio.run(run())


async def opened(intake: Intake, stream: str, source: str = "orders") -> Feed:
    feed = intake.open(Hello(source=source, stream=stream), client="1.2.3.4")
    await feed.open(SequenceNumber(0))
    return feed


def test_credits_are_counted_by_client_and_frames_that_kafka_has_not_taken() -> None:
    async def work(intake: Intake, log: SlowLog) -> None:
        found = queue_values(intake)
        assert (found["credits"], found["credits_least"], found["clients"]) == (0, "", "[]")
        idle = await opened(intake, "idle")
        busy = await opened(intake, "busy")
        for sequence in range(1, 5):
            await taken(busy, rows_frame(sequence, orders(range(3))))
        found = queue_values(intake)
        assert (found["credits"], found["credits_least"], found["without_credit"]) == (4, 0, 1)
        first, second = clients_in(str(found["clients"]))
        assert first == ClientCredits("orders/busy", 0, 4, first.waited_s)
        assert second == ClientCredits("orders/idle", 4, 0, 0.0)
        assert 0.0 <= first.waited_s == found["without_credit_s"]
        assert found["unacknowledged"] == 6, "both have opened their sessions in the log, too"
        assert int(found["buffered"]) > 0
        log.answer()
        assert await busy.receipt() is not None
        found = queue_values(intake)
        assert (found["credits"], found["credits_least"], found["without_credit"]) == (8, 4, 0)
        assert (found["without_credit_s"], found["unacknowledged"], found["buffered"]) == (0.0, 0, 0)
        busy.finish()
        assert [each.stream for each in clients_in(str(queue_values(intake)["clients"]))] == ["orders/idle"]
        idle.close()
        busy.close()

    with_intake({"orders": route()}, work)


def test_a_sender_of_many_clients_names_those_with_least_credit_and_counts_all() -> None:
    async def work(intake: Intake, _: SlowLog) -> None:
        feeds = [await opened(intake, f"feed-{number:02}") for number in range(NAMED_MAX + 10)]
        await taken(feeds[-1], rows_frame(1, orders(range(3))))
        found = queue_values(intake)
        named = clients_in(str(found["clients"]))
        assert len(named) == NAMED_MAX
        assert named[0].stream == f"orders/feed-{NAMED_MAX + 9}"
        assert (found["credits"], found["credits_least"]) == (4 * (NAMED_MAX + 10) - 1, 3)

    with_intake({"orders": route()}, work)


def gated(name: str, gate: threading.Event) -> Source:
    """A source whose decoder waits at a gate."""

    def decode(row: bytes) -> Line:
        gate.wait(60)
        return Line(row.decode())

    app = Application("shop")
    app.source(name, schema=Line, decoder=each(decode)).sink("all")
    return app.sources[0]


def test_frames_that_wait_to_be_decoded_are_counted_by_source_and_for_how_long_there_was_no_room() -> None:
    gate = threading.Event()
    routes = {"slow": route(gated("slow", gate)), "orders": route()}

    async def work(intake: Intake, _: SlowLog) -> None:
        feeds = [await opened(intake, f"feed-{number}", "slow") for number in range(4)]
        frame = IngestFrame(sequence=1, rows=Rows(messages=[b"x" * 20_000]))
        taking = [asyncio.create_task(taken(feed, frame)) for feed in feeds[:3]]
        splitter = intake.splitters["slow"]
        await asyncio.sleep(0)
        await asyncio.to_thread(eventually, lambda: splitter.frames_waiting == 2)
        found = queue_values(intake)
        assert found["decoding/slow"] == 2, "one is being decoded"
        assert 60_000 < int(found["decoding_bytes/slow"]) < 100_000
        assert (found["held_s/slow"], found["held_s"]) == (0.0, 0.0)
        taking.append(asyncio.create_task(taken(feeds[3], frame)))  # the room that is left
        await asyncio.sleep(0)
        await asyncio.to_thread(eventually, lambda: float(queue_values(intake)["held_s/slow"]) > 0.05)
        found = queue_values(intake)
        assert (found["decoding/slow"], found["decoding/orders"], found["held_s/orders"]) == (3, 0, 0.0)
        gate.set()
        await asyncio.gather(*taking)
        found = queue_values(intake)
        assert (found["decoding/slow"], found["decoding_bytes/slow"]) == (0, 0)
        assert not splitter.waiting.is_full

    with_intake(routes, work, replace(LIMITS, buffer_bytes_max=2 * 100_000))
