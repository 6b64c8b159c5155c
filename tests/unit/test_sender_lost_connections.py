"""gRPC reports a lost connection as the end of requests, too: only a session that its client ended has ended."""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, cast

import grpc
import pytest
import structlog

from bettong.chaos.proxy import Proxy
from bettong.config.reading import read
from bettong.config.sender import SenderSettings
from bettong.errors import LogError
from bettong.frames.frame import FrameKind, decode
from bettong.identifiers import NO_SEQUENCE, TopicPartition
from bettong.v1.ingest_pb2 import Hello, IngestRequest, IngestResponse, Receipt
from bettong_sender.feed import Feed
from bettong_sender.intake import Intake, Limits
from bettong_sender.ownership import Ownership
from bettong_sender.service import receiving_of, shares_of
from bettong_sender.servicer import IngestServicer, handlers
from bettong_sender.status import SenderStatus
from tests.samples.sender import orders, route, rows_frame
from tests.waiting import eventually

# With so many in one connection, one in six took its loss for their client's end before.
SESSIONS = 200
CUTS = 2
LIMITS = Limits(credits=4, sessions_max=2 * SESSIONS, buffer_bytes_max=1 << 24)
METHOD = "/bettong.v1.IngestService/Ingest"


@dataclass
class CountingLog:
    """Takes all records, and counts them by kind."""

    kinds: Counter[FrameKind] = field(default_factory=Counter)
    _ends: Counter[TopicPartition] = field(default_factory=Counter)

    def append(
        self,
        to: TopicPartition,
        value: bytes,
        on_done: Callable[[int | LogError], None],
        *,
        traceparent: bytes = b"",
    ) -> None:
        """See Log."""
        del traceparent
        self.kinds[decode(value).kind] += 1
        self._ends[to] += 1
        on_done(self._ends[to] - 1)


@dataclass
class Undisputed:
    """A lease."""

    durable = NO_SEQUENCE
    in_doubt = False
    ended = False


class Leases:
    """Gives each session its lease."""

    @contextlib.asynccontextmanager
    async def hold(self, holder: Feed, *, client: str, peer: str) -> AsyncIterator[Undisputed]:
        """See Ownership."""
        del holder, client, peer
        yield Undisputed()

    async def confirm(self, lease: Undisputed, opened: Callable[[], Awaitable[None]]) -> None:
        """See Ownership."""
        del lease
        await opened()


@contextlib.asynccontextmanager
async def serving(log: CountingLog) -> AsyncIterator[tuple[Intake, str]]:
    """A sender that appends to this log, and its address."""
    intake = Intake("shop", {"orders": route()}, LIMITS, SenderStatus(since_s=1), clock=time.time_ns)
    intake.use(log, {"shop.stage.orders": "1", "shop.dead-letters": "2"})
    settings = read(
        SenderSettings, {"application": "x.py", "sender_sessions_per_client_max": LIMITS.sessions_max}
    )
    servicer = IngestServicer(
        intake,
        cast("Ownership", Leases()),
        shares_of(settings),
        receiving_of(settings),
        asyncio.Event(),
        structlog.get_logger(),
    )
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((handlers(servicer),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield intake, f"127.0.0.1:{port}"
    finally:
        await server.stop(None)
        intake.close()


@contextlib.asynccontextmanager
async def open_sessions(address: str, *hellos: Hello) -> AsyncIterator[list[Any]]:
    """Calls that share one connection, each welcome."""
    async with grpc.aio.insecure_channel(
        address, options=(("grpc.use_local_subchannel_pool", 1),)
    ) as channel:
        ingest = channel.stream_stream(METHOD, IngestRequest.SerializeToString, IngestResponse.FromString)
        calls = []
        for hello in hellos:
            calls.append(call := ingest())
            await call.write(IngestRequest(hello=hello))
        for call in calls:
            welcome = await call.read()
            assert isinstance(welcome, IngestResponse)
            assert welcome.HasField("welcome")
        yield calls


async def all_closed(intake: Intake) -> None:
    """Returns when no session is open and all that they had to append is appended."""
    splitter = intake.splitters["orders"]
    await asyncio.to_thread(eventually, lambda: not intake.clients and splitter.frames_waiting == 0)


def test_a_lost_connection_ends_no_stream() -> None:
    log = CountingLog()

    async def conversation() -> None:
        hellos = [Hello(source="orders", stream=f"s-{each}", ephemeral=True) for each in range(SESSIONS)]
        async with serving(log) as (intake, address):
            with Proxy(address) as proxy:
                for _ in range(CUTS):
                    async with open_sessions(proxy.address, *hellos):
                        proxy.cut()
                        await all_closed(intake)
                    proxy.heal()

    asyncio.run(asyncio.wait_for(conversation(), 60))
    assert log.kinds == {FrameKind.OPEN: CUTS * SESSIONS}


@pytest.mark.parametrize("hello", [Hello(ephemeral=True), Hello(finite=True), Hello()])
def test_a_client_that_ends_its_requests_ends_its_stream_and_its_last_receipt_says_all(hello: Hello) -> None:
    log = CountingLog()

    async def conversation() -> list[Receipt]:
        hello.source, hello.stream = "orders", "s"
        async with serving(log) as (intake, address), open_sessions(address, hello) as (call,):
            await call.write(IngestRequest(frame=rows_frame(7, orders(range(3)))))
            await call.done_writing()
            receipts: list[Receipt] = []
            while (response := await call.read()) is not grpc.aio.EOF:
                receipts.append(response.receipt)
            assert await call.code() is grpc.StatusCode.OK
            await all_closed(intake)
            return receipts

    receipts = asyncio.run(asyncio.wait_for(conversation(), 60))
    assert receipts[-1].acknowledged == 7
    assert sum(each.credits for each in receipts) == 1
    ends = hello.ephemeral or hello.finite
    assert log.kinds[FrameKind.END] == (log.kinds[FrameKind.OPEN] if ends else 0)
