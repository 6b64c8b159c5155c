"""What a subscriber leaves behind: garbage that is collected, and a thread and a reader that count until they end."""

import asyncio
import gc
import threading
import weakref
from collections.abc import Awaitable, Callable
from typing import Any, Self, cast

import grpc
import pytest
import structlog

from bettong.edges.grpc_server import ClientShares
from bettong.edges.kafka_log import LogAdmin, LogReader
from bettong.identifiers import TopicPartition
from bettong.v1 import subscribe_pb2 as pb
from bettong_receiver import servicer as servicing
from bettong_receiver.formats import formats
from bettong_receiver.servicer import SubscribeServicer
from tests.samples.result_frames import planned
from tests.waiting import eventually

FORMATS = formats(planned())
SUBSCRIBERS_MAX = 2


class Ring:
    """An object that refers to itself."""

    def __init__(self) -> None:
        self.own = self


async def _freed(*, is_left: bool) -> bool:
    servicer = SubscribeServicer(
        {},
        subscribers_max=1,
        shares=cast("Any", None),
        bytes_max=1,
        ahead_bytes_max=1,
        stall_s=60.0,
        open_admin=cast("Any", None),
        open_reader=cast("Any", None),
        log=structlog.get_logger(),
    )
    ring = weakref.ref(Ring())
    watching = asyncio.create_task(servicer.watch())
    if is_left:
        servicer._left.set()
    for _ in range(10):
        await asyncio.sleep(0)
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    return ring() is None


@pytest.mark.parametrize("is_left", [True, False], ids=["a subscriber has left", "none has"])
def test_all_generations_are_collected_when_a_subscriber_has_left(
    *, is_left: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servicing, "_COLLECT_S", 0.0)
    gc.collect()
    gc.disable()
    try:
        assert asyncio.run(_freed(is_left=is_left)) is is_left
    finally:
        gc.enable()


class StandingKafka:
    """A log without records, which answers nobody before `go_on` is set. `readers`: those that are open."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.readers = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def beginnings(self, topics: list[str]) -> dict[TopicPartition, int]:
        assert self.go_on.wait(60)
        return {TopicPartition(topic, 0): 0 for topic in topics}

    ends = beginnings

    def opened(self, _: object) -> LogReader:
        self.readers += 1
        return cast("LogReader", self)

    def poll(self, timeout_ms: int, records_max: int) -> list[object]:
        del timeout_ms, records_max
        return []

    def close(self) -> None:
        self.readers -= 1


class Aborted(Exception):
    """A call was ended with a status."""


class Call:
    """The server's end of a call, and its first response."""

    def __init__(self) -> None:
        self.answered = asyncio.Event()

    def peer(self) -> str:
        return "ipv4:10.0.0.7:51234"

    def auth_context(self) -> dict[str, object]:
        return {}

    async def write(self, _: bytes) -> None:
        self.answered.set()

    async def abort(self, code: grpc.StatusCode, text: str) -> None:
        raise Aborted(f"{code.name}: {text}")


def beside_a_standing_kafka(
    work: Callable[[SubscribeServicer, StandingKafka], Awaitable[None]], *, bytes_max: int = 1 << 30
) -> None:
    async def run() -> None:
        kafka = StandingKafka()
        servicer = SubscribeServicer(
            FORMATS,
            subscribers_max=SUBSCRIBERS_MAX,
            shares=ClientShares(SUBSCRIBERS_MAX, what="subscriptions", setting="S", remedy="end some"),
            bytes_max=bytes_max,
            ahead_bytes_max=1000,
            stall_s=60.0,
            open_admin=lambda: cast("LogAdmin", kafka),
            open_reader=kafka.opened,
            log=structlog.get_logger(),
        )
        servicer.serve(lambda _: {})
        try:
            await work(servicer, kafka)
        finally:
            kafka.go_on.set()

    asyncio.run(asyncio.wait_for(run(), 60))


async def subscribed(servicer: SubscribeServicer, call: Call | None = None) -> "asyncio.Task[None]":
    """A subscriber that waits for Kafka on its thread, or for a thread."""
    request = pb.SubscribeRequest(sink="raw")
    one = asyncio.create_task(servicer.Subscribe(request, cast("servicing.Context", call or Call())))
    await asyncio.sleep(0)
    return one


def threads() -> int:
    return sum(each.name.startswith("subscriber") for each in threading.enumerate())


async def leave(*subscribers: "asyncio.Task[None]") -> None:
    for each in subscribers:
        each.cancel()
    await asyncio.gather(*subscribers, return_exceptions=True)


def test_threads_of_subscribers_that_have_left_are_as_many_as_there_may_be_subscribers() -> None:
    async def work(servicer: SubscribeServicer, kafka: StandingKafka) -> None:
        for _ in range(10):
            await leave(await subscribed(servicer))
        assert threads() == SUBSCRIBERS_MAX
        assert servicer.room.subscribers == set()
        call = Call()
        last = await subscribed(servicer, call)
        assert threads() == SUBSCRIBERS_MAX
        kafka.go_on.set()
        await call.answered.wait()
        await leave(last)
        await asyncio.to_thread(eventually, lambda: servicer.room.readers == 0, what="all readers are closed")
        assert (servicer.room.held, servicer.room.closing, kafka.readers) == (0, 0, 0)

    beside_a_standing_kafka(work)


def test_a_subscriber_that_waits_for_a_thread_is_told_that_the_receiver_stops() -> None:
    async def work(servicer: SubscribeServicer, kafka: StandingKafka) -> None:
        del kafka
        await leave(*[await subscribed(servicer) for _ in range(SUBSCRIBERS_MAX)])
        waiting = await subscribed(servicer)
        servicer.stop()
        with pytest.raises(Aborted, match="UNAVAILABLE: the receiver stops"):
            await waiting

    beside_a_standing_kafka(work)


def test_a_subscriber_is_told_that_readers_of_others_are_not_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servicing, "_READER_WAIT_S", 0.05)

    async def work(servicer: SubscribeServicer, kafka: StandingKafka) -> None:
        del kafka
        await leave(*[await subscribed(servicer) for _ in range(SUBSCRIBERS_MAX)])
        with pytest.raises(
            Aborted, match="UNAVAILABLE: readers of subscribers that have left are not closed"
        ):
            await (await subscribed(servicer))

    beside_a_standing_kafka(work)
