"""Topics of the log that are deleted and made again under live sessions."""

import asyncio
from dataclasses import replace
from typing import cast

import pytest

from bettong.edges.kafka_log import LogAdmin
from bettong.errors import LogUnavailableError
from bettong.frames.frame import decode
from bettong.identifiers import SequenceNumber, TopicPartition
from bettong.ingest.refusal import Code, Refusal
from bettong.v1.ingest_pb2 import Hello
from bettong_sender.generation_watch import GenerationWatch
from bettong_sender.intake import Intake
from bettong_sender.status import SenderStatus
from tests.samples.sender import route
from tests.unit.test_sender_intake import CERTAIN, LIMITS, PromptLog, SilentLog, opened, request

TOPICS = {"shop.stage.orders": "one", "shop.dead-letters": "letters"}


@pytest.mark.parametrize("topic", TOPICS)
def test_a_topic_that_was_made_anew_ends_its_feeds_so_that_they_open_again(topic: str) -> None:
    async def conversation() -> list[Refusal]:
        elsewhere = replace(
            route(), stage_topic="shop.stage.quotes", dead_letter_topic="shop.other-dead-letters"
        )
        routes = {"orders": route(), "quotes": elsewhere}
        topics = {**TOPICS, "shop.stage.quotes": "two", "shop.other-dead-letters": "others"}
        intake = Intake("shop", routes, LIMITS, SenderStatus(since_s=1), clock=lambda: 1)
        same = PromptLog(asyncio.get_running_loop())
        intake.use(same, topics)
        feed = await opened(intake, "feed-1", "1.2.3.4")
        other = intake.open(Hello(source="quotes", stream="q"), client="1.2.3.4")
        await other.open(SequenceNumber(0))
        for one in (feed, other):
            await one.opened()
            await one.take_request(request(1, b"unreadable"), CERTAIN)
        intake.use(same, topics)
        await feed.take_request(request(2, b"unreadable"), CERTAIN)
        while (receipt := await feed.receipt()) is not None and receipt.acknowledged < 2:
            pass
        intake.use(log := SilentLog(), {**topics, topic: "three"})
        refusals = []
        with pytest.raises(Refusal) as caught:
            await feed.receipt()
        refusals.append(caught.value)
        with pytest.raises(Refusal) as caught:
            await feed.take_request(request(3, b"unreadable"), CERTAIN)
        refusals.append(caught.value)
        assert not log.values
        assert await other.receipt() is not None
        intake.close()
        return refusals

    for refusal in asyncio.run(asyncio.wait_for(conversation(), 60)):
        assert refusal.code is Code.UNAVAILABLE
        assert str(refusal) == (
            f"topic {topic} was deleted and made anew; connect again and resend what has no receipt"
        )


def test_another_generation_ends_all_feeds_and_new_ones_are_of_it() -> None:
    async def conversation() -> tuple[str, set[int]]:
        intake = Intake("shop", {"orders": route()}, LIMITS, SenderStatus(since_s=1), clock=lambda: 1)
        intake.use(PromptLog(asyncio.get_running_loop()), TOPICS)
        feed = await opened(intake, "feed-1", "1.2.3.4")
        intake.use(log := SilentLog(), TOPICS, generation=2)
        with pytest.raises(Refusal) as caught:
            await feed.receipt()
        later = intake.open(Hello(source="orders", stream="feed-2"), client="1.2.3.4")
        await later.open(SequenceNumber(0))
        await later.take_request(request(1, b"unreadable"), CERTAIN)
        intake.close()
        return str(caught.value), {decode(value).generation for value in log.values}

    text, generations = asyncio.run(asyncio.wait_for(conversation(), 60))
    assert text == "application 'shop' was repartitioned; connect again and resend what has no receipt"
    assert generations == {2}


def test_what_the_log_takes_has_no_receipt_while_it_is_open_whether_the_application_is_the_same() -> None:
    async def conversation() -> tuple[Refusal, int]:
        intake = Intake("shop", {"orders": route()}, LIMITS, SenderStatus(since_s=1), clock=lambda: 1)
        current = [True]
        intake.use(PromptLog(asyncio.get_running_loop()), TOPICS, is_current=lambda: current[0])
        feed = await opened(intake, "feed-1", "1.2.3.4")
        await feed.take_request(request(1, b"unreadable"), CERTAIN)
        while (receipt := await feed.receipt()) is not None and receipt.acknowledged < 1:
            pass
        current[0] = False
        await feed.take_request(request(2, b"unreadable"), CERTAIN)
        with pytest.raises(Refusal) as caught:
            await feed.receipt()
        intake.close()
        return caught.value, feed.acknowledged

    refusal, acknowledged = asyncio.run(asyncio.wait_for(conversation(), 60))
    assert refusal.code is Code.UNAVAILABLE
    assert "repartitioned meanwhile; connect again and resend what has no receipt" in str(refusal)
    assert acknowledged == 1


def test_it_is_open_when_kafka_did_not_answer_for_long_and_settled_by_an_answer() -> None:
    now_s, answers = [100.0], [None, 4, 6, 4]

    class Admin:
        """Of a log with so many records, or that is away."""

        def partition_counts(self, topics: list[str]) -> dict[str, int]:
            """See LogAdmin."""
            return dict.fromkeys(topics, 1)

        def ends(self, topics: list[str]) -> dict[TopicPartition, int]:
            """See LogAdmin."""
            answer = answers.pop(0)
            if answer is None:
                raise LogUnavailableError("away")
            now_s[0] += 3.0  # what was true when it was asked counts
            return {TopicPartition(topics[0], 0): answer}

    watch = GenerationWatch(cast("LogAdmin", Admin()), "shop", 4, 99.0, lambda: now_s[0])
    assert watch.is_current()
    now_s[0] = 107.0
    watch.check()
    assert not watch.is_current()
    watch.check()
    assert watch.is_current()
    now_s[0] = 115.0
    assert not watch.is_current()
    watch.check()
    assert watch.has_changed
    watch.check()
    assert not watch.is_current(), "it has changed once, and this sender knows the former"
