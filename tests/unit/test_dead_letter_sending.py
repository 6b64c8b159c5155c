"""A dead letter's message is sent again and marked, whatever the leases of streams have forgotten in between."""

import asyncio
import contextlib
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, cast

import grpc
import pytest
import structlog

import bettong
from bettong.application.plan import Stage, plan
from bettong.config.reading import read
from bettong.config.sender import SenderSettings
from bettong.delivery import ORIGIN_TTL_NS
from bettong.errors import ClientError, LogError
from bettong.frames.dead_letter_id import DeadLetterId
from bettong.frames.frame import Frame, FrameKind, decode, encode
from bettong.identifiers import Origin, SequenceNumber, TopicPartition
from bettong.ingest.session import SourceRoute
from bettong.inspection.live.resending import send_again
from bettong.inspection.retry import Resend
from bettong.worker.partition import PartitionWorker
from bettong.worker.stage_program import program
from bettong_sender.feed import Feed
from bettong_sender.intake import Intake, Limits
from bettong_sender.ownership import Ownership
from bettong_sender.service import receiving_of, shares_of
from bettong_sender.servicer import IngestServicer, handlers
from bettong_sender.status import SenderStatus
from tests.samples.sender import PARTITIONS, Reading, as_row, orders, route
from tests.samples.worker import fold, tick, worker

DEAD_LETTER = DeadLetterId(0, 12, 3)
ROW = Resend("orders", row=as_row(orders([1])[0]))
UNREADABLE = Resend("orders", row=b"no order")


@dataclass
class KeptLog:
    """A log in memory: of each session the `previous` of its mark, and the sequences of frames."""

    marks: list[int] = field(default_factory=list)
    frames: list[int] = field(default_factory=list)
    stage: dict[int, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    _end: int = 0

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
        frame = decode(value)
        if to.topic == "shop.stage.orders":
            self.stage[to.partition].append(value)
        if frame.kind is FrameKind.SENT_AGAIN:
            self.marks.append(frame.previous)
        elif frame.kind is FrameKind.DATA:
            self.frames.append(frame.sequence)
        self._end += 1
        on_done(self._end)


class Forgetful:
    """Leases that know up to where a stream is durable, but for the ends of so many sessions."""

    in_doubt = False

    def __init__(self, forgets: int, *, durable: int = 0) -> None:
        self.durable = durable
        self._forgets = forgets

    @contextlib.asynccontextmanager
    async def hold(self, holder: Feed, *, client: str, peer: str) -> AsyncIterator["Forgetful"]:
        """See Ownership."""
        del client, peer
        yield self
        self._forgets -= 1
        if self._forgets < 0:
            self.durable = holder.acknowledged

    async def confirm(self, lease: "Forgetful", opened: Any) -> None:
        """See Ownership."""
        del lease, opened


def sent_again(
    leases: Forgetful, resend: Resend, to: SourceRoute | None = None
) -> tuple[KeptLog, bool | ClientError]:
    """What the log holds, and how it ended, of a message that is sent through a sender with these leases."""
    log = KeptLog()

    async def conversation() -> bool | ClientError:
        limits = Limits(credits=4, sessions_max=8, buffer_bytes_max=1 << 20)
        intake = Intake(
            "shop", {"orders": to or route()}, limits, SenderStatus(since_s=1), clock=time.time_ns
        )
        intake.use(log, {"shop.stage.orders": "1", "shop.dead-letters": "2"})
        settings = read(SenderSettings, {"application": "x.py"})
        servicer = IngestServicer(
            intake,
            cast("Ownership", leases),
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
            return await asyncio.to_thread(send_again, f"127.0.0.1:{port}", DEAD_LETTER, resend)
        except ClientError as error:
            return error
        finally:
            await server.stop(None)
            intake.close()

    ended = asyncio.run(asyncio.wait_for(conversation(), 60))
    return log, ended


def test_a_message_is_sent_once_and_marked_by_a_second_session() -> None:
    log, ended = sent_again(Forgetful(0), ROW)
    assert (log.frames, log.marks, ended) == ([1], [0, 1], True)


def test_what_had_arrived_before_is_only_marked() -> None:
    log, ended = sent_again(Forgetful(0, durable=1), ROW)
    assert (log.frames, log.marks, ended) == ([], [1], True)


@pytest.mark.parametrize("resend", [ROW, UNREADABLE])
def test_where_the_lease_forgot_it_it_is_sent_under_its_number_again_until_its_mark_says_that_it_arrived(
    resend: Resend,
) -> None:
    log, ended = sent_again(Forgetful(1), resend)
    assert (log.frames, log.marks, ended) == ([1, 1], [0, 0, 1], resend is ROW)


def test_what_cannot_be_marked_is_reported_so_that_the_command_is_called_again() -> None:
    log, ended = sent_again(Forgetful(100), ROW)
    assert isinstance(ended, ClientError)
    assert "dead letter 0.12.3: its message was sent to source 'orders'" in str(ended)
    assert "run the command again within 12 hours" in str(ended)
    assert set(log.frames) == {1}
    assert not any(log.marks)


@dataclass
class Counted:
    """The readings of a window."""

    key: bettong.u32
    count: bettong.i64


def windowed() -> tuple[Stage, SourceRoute]:
    """A stage with windows whose source never falls idle, and where its readings go."""
    app = bettong.Application("shop")
    source = app.source("orders", schema=Reading, key="sensor", event_time="at", idle_timeout=None)
    source.window(
        bettong.tumbling(timedelta(seconds=1)), bettong.aggregate(Counted, count=bettong.Count())
    ).sink("out")
    (stage,) = plan(app).stages
    return stage, replace(route(app.sources[0]), needs_time=True, judges_lateness=True)


def of_feed(at_ns: int, number: int) -> bytes:
    """A record that moves the watermark of the stream `feed` there."""
    frame = Frame(
        origin=Origin("orders/feed"),
        sequence=SequenceNumber(number),
        previous=SequenceNumber(number),
        kind=FrameKind.OPEN,
        ingest_ns=at_ns,
        watermark_ns=at_ns,
    )
    return encode(frame)


def fed(stage: Stage, at_ns: int) -> list[PartitionWorker]:
    """The stage's partitions, to which a client is connected."""
    workers = [
        worker(program(stage, compiled=False), partition=partition, partitions=PARTITIONS)
        for partition in range(PARTITIONS)
    ]
    for each in workers:
        fold(each, [of_feed(at_ns, 1)])
    return workers


@pytest.mark.parametrize("forgets", [0, 1, 100])
def test_a_message_that_was_sent_again_does_not_hold_the_watermark_back(forgets: int) -> None:
    stage, to = windowed()
    now_ns = time.time_ns()
    partitions = fed(stage, now_ns)
    log, _ = sent_again(Forgetful(forgets), Resend("orders", message=Reading(7, now_ns - 10**9)), to)
    for partition, of in enumerate(partitions):
        fold(of, log.stage[partition])
        fold(of, [of_feed(now_ns + 120 * 10**9, 2)])
        assert of.watermark == (now_ns + 120 * 10**9, "orders/feed"), partition


def test_the_number_of_a_message_that_was_sent_again_is_known_for_as_long_as_a_second_retry_is_allowed() -> (
    None
):
    stage, to = windowed()
    now_ns = time.time_ns()
    resend = Resend("orders", message=Reading(7, now_ns))
    partitions = fed(stage, now_ns)
    twelve_hours = range(now_ns, now_ns + ORIGIN_TTL_NS // 2, 10**9)
    for forgets in (100, 0):  # the command ends without a mark, and is called again
        log, _ = sent_again(Forgetful(forgets), resend, to)
        for partition, of in enumerate(partitions):
            fold(of, log.stage[partition])
            if of.counters.messages and forgets:
                fold(of, map(tick, twelve_hours))
    assert sum(of.counters.messages for of in partitions) == 1
