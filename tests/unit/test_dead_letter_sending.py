"""A dead letter's message is sent again and marked, whatever the leases of streams have forgotten in between."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any, cast

import grpc
import pytest
import structlog

from bettong.config.reading import read
from bettong.config.sender import SenderSettings
from bettong.errors import ClientError, LogError
from bettong.frames.dead_letter_id import DeadLetterId
from bettong.frames.frame import FrameKind, decode
from bettong.identifiers import TopicPartition
from bettong.inspection.live.resending import send_again
from bettong.inspection.retry import Resend
from bettong_sender.feed import Feed
from bettong_sender.intake import Intake, Limits
from bettong_sender.ownership import Ownership
from bettong_sender.service import receiving_of, shares_of
from bettong_sender.servicer import IngestServicer, handlers
from bettong_sender.status import SenderStatus
from tests.samples.sender import as_row, orders, route

DEAD_LETTER = DeadLetterId(0, 12, 3)
ROW = Resend("orders", row=as_row(orders([1])[0]))
UNREADABLE = Resend("orders", row=b"no order")


@dataclass
class KeptLog:
    """A log in memory: of each session the `previous` of its mark, and the sequences of frames."""

    marks: list[int] = field(default_factory=list)
    frames: list[int] = field(default_factory=list)
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
        del to, traceparent
        frame = decode(value)
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


def sent_again(leases: Forgetful, resend: Resend) -> tuple[KeptLog, bool | ClientError]:
    """What the log holds, and how it ended, of a message that is sent through a sender with these leases."""
    log = KeptLog()

    async def conversation() -> bool | ClientError:
        limits = Limits(credits=4, sessions_max=8, buffer_bytes_max=1 << 20)
        intake = Intake("shop", {"orders": route()}, limits, SenderStatus(since_s=1), clock=time.time_ns)
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
