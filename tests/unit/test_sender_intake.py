"""Frames on their way to the log, and what comes back, whichever of the threads is first."""

import asyncio
import threading
from collections.abc import Callable

import pytest

from bettong.errors import LogError
from bettong.v1.ingest_pb2 import Hello, IngestFrame, Receipt
from bettong_sender.intake import Intake, Limits
from bettong_sender.refusal import Code, Refusal
from bettong_sender.status import Status
from tests.sender_samples import orders, route, rows_frame

LIMITS = Limits(credits=4, sessions_max=1, buffer_bytes_max=1 << 20)


class PromptLog:
    """Answers within the call, while the event loop is busy with something else."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def append(
        self, topic: str, partition: int, value: bytes, on_done: Callable[[int | LogError], None]
    ) -> None:
        """See Log."""
        del topic, partition, value
        self._loop.call_soon_threadsafe(threading.Event().wait, 0.05)
        on_done(0)


def test_a_receipt_counts_the_dead_letters_however_early_the_log_answers() -> None:
    async def conversation() -> Receipt | None:
        intake = Intake("shop", {"orders": route()}, LIMITS, Status(since_s=1), clock=lambda: 1)
        intake.use(PromptLog(asyncio.get_running_loop()), {})
        feed = intake.open(Hello(source="orders", stream="feed-1"))
        await feed.open(0)
        receipt = asyncio.create_task(feed.receipt())
        await feed.take(rows_frame(1, orders(range(3)), spoilt=[b"no order"]), None)
        try:
            return await receipt
        finally:
            feed.close()
            intake.close()

    assert asyncio.run(conversation()) == Receipt(acknowledged=1, credits=1, dead_letters=1)


def test_a_refused_frame_has_no_receipt_whoever_looks_before_the_refusal_is_heard() -> None:
    async def conversation() -> list[Receipt | None]:
        loop = asyncio.get_running_loop()
        told: list[Receipt | None] = []
        looks: list[Callable[[], None]] = []

        def clock() -> int:
            """Asked by the splitter before it refuses: the loop is busy until it has, then looks for receipts."""
            for look in looks:
                loop.call_soon_threadsafe(threading.Event().wait, 0.05)
                loop.call_soon_threadsafe(look)
            return 1

        async def listen() -> None:
            while True:
                told.append(await feed.receipt())

        intake = Intake("shop", {"orders": route()}, LIMITS, Status(since_s=1), clock=clock)
        intake.use(PromptLog(loop), {})
        feed = intake.open(Hello(source="orders", stream="feed-1"))
        await feed.open(0)
        listening = asyncio.create_task(listen())
        looks.append(feed.wake)
        with pytest.raises(Refusal) as caught:
            await feed.take(IngestFrame(sequence=1), None)
        assert caught.value.code is Code.INVALID_ARGUMENT
        listening.cancel()
        feed.close()
        intake.close()
        return told

    assert asyncio.run(conversation()) == []
