"""Frames of one session that are handed over without waiting for each other: what a refused one does to the others."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast
from unittest.mock import Mock

import pytest

from bettong.frames.frame import FrameKind, decode
from bettong.ingest.refusal import Code, Refusal, unavailable
from bettong_sender import feed as feeds
from bettong_sender.intake import Intake
from bettong_sender.servicer import IngestServicer
from bettong_sender.status import SenderStatus
from tests.samples.sender import route
from tests.unit.test_sender_intake import (
    CERTAIN,
    LIMITS,
    Gate,
    PromptLog,
    SilentLog,
    gated,
    intake_of,
    opened,
    request,
)
from tests.waiting import eventually


def sequences(values: list[bytes]) -> list[int]:
    """Of the data records, in the log's order."""
    frames = [decode(value) for value in values]
    return [frame.sequence for frame in frames if frame.kind is FrameKind.DATA]


def test_a_session_hands_over_as_many_frames_as_it_has_credits_while_the_first_is_read() -> None:
    gate = Gate()

    async def conversation() -> list[int]:
        async with intake_of(gated(gate)) as (intake, log):
            feed = await opened(intake, "feed-1", "1.2.3.4")
            await feed.take_request(request(1, b"wait"), CERTAIN)
            await asyncio.to_thread(gate.reached.wait, 60)
            for sequence in range(2, LIMITS.credits + 1):
                await feed.take_request(request(sequence, b"x"), CERTAIN)
            assert intake.splitters["orders"].frames_waiting == LIMITS.credits - 1
            with pytest.raises(Refusal, match="without a credit"):
                await feed.take_request(request(LIMITS.credits + 1, b"x"), CERTAIN)
            gate.open.set()
            await feed.all_appended()
            return sequences(log.values)

    assert asyncio.run(conversation()) == list(range(1, LIMITS.credits + 1))


def test_a_session_with_large_frames_hands_over_one_behind_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else it would fill its source's share of the buffer, and other clients would wait for all of it."""
    monkeypatch.setattr(feeds, "AHEAD_BYTES_MAX", 10_000)
    gate = Gate()
    large = b"x" * 5_000

    async def conversation() -> list[int]:
        async with intake_of(gated(gate)) as (intake, log):
            feed = await opened(intake, "feed-1", "1.2.3.4")
            await feed.take_request(request(1, b"wait", large), CERTAIN)
            await feed.take_request(request(2, large), CERTAIN)
            third = asyncio.create_task(feed.take_request(request(3, b"x"), CERTAIN))
            await asyncio.to_thread(gate.reached.wait, 60)
            assert not third.done()
            assert intake.splitters["orders"].frames_waiting == 1
            gate.open.set()
            await third
            await feed.all_appended()
            return sequences(log.values)

    assert asyncio.run(asyncio.wait_for(conversation(), 60)) == [1, 2, 3]


def test_frames_behind_a_refused_one_are_neither_read_nor_appended_and_those_before_it_have_their_receipt() -> (
    None
):
    gate = Gate()

    async def conversation() -> tuple[list[int], Refusal]:
        intake = Intake(
            "shop", {"orders": route(gated(gate))}, LIMITS, SenderStatus(since_s=1), clock=lambda: 1
        )
        intake.use(PromptLog(asyncio.get_running_loop()), {})
        feed = await opened(intake, "feed-1", "1.2.3.4")
        await feed.take_request(request(5, b"wait"), CERTAIN)
        for sequence, row in ((3, b"refused"), (6, b"behind"), (7, b"behind")):
            await feed.take_request(request(sequence, row), CERTAIN)
        gate.open.set()
        acknowledged: list[int] = []
        with pytest.raises(Refusal) as caught:
            await _listen(feed, acknowledged)
        with pytest.raises(Refusal, match="sequences grow"):
            await feed.take_request(request(8, b"later"), CERTAIN)
        with pytest.raises(Refusal, match="sequences grow"):
            await feed.all_appended()
        assert intake.splitters["orders"].waiting.bytes == intake.buffer.bytes == 0
        intake.close()
        return acknowledged, caught.value

    acknowledged, refusal = asyncio.run(asyncio.wait_for(conversation(), 60))
    assert acknowledged[-1] == 5
    assert refusal.code is Code.INVALID_ARGUMENT
    assert "frame 3 of 'orders/feed-1': sequences grow, and the last one was 5" in str(refusal)
    assert gate.decoded == [b"wait"]


def test_a_refusal_waits_for_the_receipts_of_frames_before_it_and_not_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(feeds, "RECEIPTS_WAIT_S", 0.3)

    async def conversation() -> float:
        async with intake_of(gated(Gate())) as (intake, _):
            feed = await opened(intake, "feed-1", "1.2.3.4")
            for sequence in (1, 1):
                await feed.take_request(request(sequence, b"x"), CERTAIN)
            clock = asyncio.get_running_loop().time
            began_s = clock()
            with pytest.raises(Refusal, match="sequences grow"):
                await feed.receipt()  # its log never answers
            return clock() - began_s

    assert asyncio.run(asyncio.wait_for(conversation(), 60)) >= 0.2


def test_frames_behind_one_that_the_log_did_not_take_are_not_appended() -> None:
    gate = Gate()

    async def conversation() -> tuple[list[int], str]:
        intake = Intake(
            "shop", {"orders": route(gated(gate))}, LIMITS, SenderStatus(since_s=1), clock=lambda: 1
        )
        log = SilentLog(takes=3)  # the opening, the first frame's own and the record of it
        intake.use(log, {})
        feed = await opened(intake, "feed-1", "1.2.3.4")
        await feed.take_request(request(1, b"wait"), CERTAIN)
        for sequence in (2, 3, 4):
            await feed.take_request(request(sequence, b"x"), CERTAIN)
        gate.open.set()
        with pytest.raises(Refusal) as caught:
            await feed.all_appended()
        log.takes = 100
        await asyncio.to_thread(eventually, lambda: intake.splitters["orders"].frames_waiting == 0)
        intake.close()
        assert caught.value.code is Code.UNAVAILABLE
        return sequences(log.values), str(caught.value)

    found, text = asyncio.run(asyncio.wait_for(conversation(), 60))
    assert found == list(range(1, len(found) + 1))
    assert len(found) < 4
    assert "the disk is full" in text


def test_a_sender_that_stops_reads_nothing_more_of_what_waits() -> None:
    gate = Gate()

    async def conversation() -> None:
        intake = Intake(
            "shop", {"orders": route(gated(gate))}, LIMITS, SenderStatus(since_s=1), clock=lambda: 1
        )
        intake.use(SilentLog(), {})
        feed = await opened(intake, "feed-1", "1.2.3.4")
        await feed.take_request(request(1, b"wait"), CERTAIN)
        await asyncio.to_thread(gate.reached.wait, 60)
        await feed.take_request(request(2, b"dropped"), CERTAIN)
        closing = asyncio.create_task(asyncio.to_thread(intake.close))
        with pytest.raises(Refusal, match="the sender stops"):
            await feed.all_appended()
        gate.open.set()
        await closing

    asyncio.run(asyncio.wait_for(conversation(), 60))


class Dropped:
    """A feed of a client that has sent all, of which a sender that stops has dropped a frame."""

    def finish(self) -> None:
        """See Feed."""

    async def receipt(self) -> None:
        """See Feed."""
        raise unavailable("the sender stops")


def test_a_session_whose_frames_were_dropped_does_not_end_well() -> None:
    async def no_more() -> AsyncIterator[bytes]:
        for each in tuple[bytes, ...]():
            yield each

    async def conversation() -> None:
        of_session: Any = Mock()
        servicer = IngestServicer(
            of_session, of_session, of_session, of_session, asyncio.Event(), logger=of_session
        )
        with pytest.raises(Refusal, match="the sender stops"):
            await servicer._converse(cast("Any", Dropped()), CERTAIN, no_more(), of_session)

    asyncio.run(asyncio.wait_for(conversation(), 60))


async def _listen(feed: feeds.Feed, acknowledged: list[int]) -> None:
    while (receipt := await feed.receipt()) is not None:
        acknowledged.append(receipt.acknowledged)
