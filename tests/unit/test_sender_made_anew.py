"""Topics of the log that are deleted and made again under live sessions."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
import structlog

from bettong.config.connection_settings import KafkaConnection
from bettong.edges.kafka_log import LogAdmin
from bettong.edges.partitioning_log import PreparedTopics
from bettong.errors import LogError, LogUnavailableError
from bettong.frames.frame import decode
from bettong.identifiers import SequenceNumber, TopicPartition
from bettong.ingest.refusal import Code, Refusal
from bettong.snapshots.partitioning import Partitioning
from bettong.v1.ingest_pb2 import Hello
from bettong_sender.generation_watch import GenerationWatch
from bettong_sender.intake import Intake
from bettong_sender.log_keeper import LogKeeper
from bettong_sender.status import SenderStatus, State
from tests.samples.sender import request_taken, route
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
            await request_taken(one, request(1, b"unreadable"), CERTAIN)
        intake.use(same, topics)
        await request_taken(feed, request(2, b"unreadable"), CERTAIN)
        while (receipt := await feed.receipt()) is not None and receipt.acknowledged < 2:
            pass
        intake.use(log := SilentLog(), {**topics, topic: "three"})
        refusals = []
        with pytest.raises(Refusal) as caught:
            await feed.receipt()
        refusals.append(caught.value)
        with pytest.raises(Refusal) as caught:
            await request_taken(feed, request(3, b"unreadable"), CERTAIN)
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
        await request_taken(later, request(1, b"unreadable"), CERTAIN)
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
        await request_taken(feed, request(1, b"unreadable"), CERTAIN)
        while (receipt := await feed.receipt()) is not None and receipt.acknowledged < 1:
            pass
        current[0] = False
        await request_taken(feed, request(2, b"unreadable"), CERTAIN)
        with pytest.raises(Refusal) as caught:
            await feed.receipt()
        intake.close()
        return caught.value, feed.acknowledged

    refusal, acknowledged = asyncio.run(asyncio.wait_for(conversation(), 60))
    assert refusal.code is Code.UNAVAILABLE
    assert "repartitioned meanwhile; connect again and resend what has no receipt" in str(refusal)
    assert acknowledged == 1


class Admin:
    """Of a log with so many records, one answer after the other; or the error of a request."""

    def __init__(self, now_s: list[float], *answers: int | LogError) -> None:
        self._now_s = now_s
        self._answers = list(answers)

    def partition_counts(self, topics: list[str]) -> dict[str, int]:
        """See LogAdmin."""
        return dict.fromkeys(topics, 1)

    def ends(self, topics: list[str]) -> dict[TopicPartition, int]:
        """See LogAdmin."""
        answer = self._answers.pop(0)
        if isinstance(answer, LogError):
            raise answer
        self._now_s[0] += 3.0  # what was true when it was asked counts
        return {TopicPartition(topics[0], 0): answer}


KAFKA = KafkaConnection("127.0.0.1:1")
KNOWN = PreparedTopics((), 1, 4)


def test_it_is_open_when_kafka_did_not_answer_for_long_and_settled_by_an_answer() -> None:
    now_s = [100.0]
    since_s: list[float | None] = [98.0]
    admin = cast("LogAdmin", Admin(now_s, LogUnavailableError("away"), 4, 4))
    watch = GenerationWatch(admin, KAFKA, "shop", KNOWN, 99.0, lambda: now_s[0], lambda: since_s[0])
    assert watch.is_current()
    now_s[0] = 107.0
    watch.check()
    assert not watch.is_current()
    watch.check()
    assert watch.is_current()
    since_s[0] = None
    assert not watch.is_current(), "Redis may not list this sender: a change may begin behind the answer"
    since_s[0] = now_s[0]
    assert not watch.is_current(), "a change may have begun before Redis listed it again"
    watch.check()
    assert watch.is_current()
    now_s[0] += 8.0
    assert not watch.is_current()


def test_a_change_ends_the_sender_and_records_that_say_nothing_new_do_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s, same = [100.0], Partitioning(1, 3)
    kept: list[Partitioning | None] = [same, same.begun(5, "b"), None, same, replace(same, generation=2)]
    monkeypatch.setattr("bettong_sender.generation_watch.kept_partitioning", lambda *_: kept.pop(0))
    admin = cast("LogAdmin", Admin(now_s, 5, 6, 0, 6, 7, 8))
    watch = GenerationWatch(admin, KAFKA, "shop", KNOWN, 99.0, lambda: now_s[0], lambda: 98.0)

    def current_after_a_check() -> bool:
        now_s[0] += 10.0
        watch.check()
        return watch.is_current()

    assert current_after_a_check(), "a run that does not count any more has written"
    assert not current_after_a_check(), "a change has begun"
    assert not current_after_a_check(), "a broker that does not know of the topic"
    assert not current_after_a_check(), "nor has it the records"
    assert current_after_a_check(), "it was taken back"
    found = [watch.has_changed]
    assert not current_after_a_check()
    assert [*found, watch.has_changed] == [False, True]
    now_s[0] -= 10.0
    assert not watch.is_current(), "it has changed once, and this sender knows the former"


def test_what_the_log_took_counts_once_it_is_settled_that_nothing_has_changed() -> None:
    async def conversation() -> int:
        intake = Intake("shop", {"orders": route()}, LIMITS, SenderStatus(since_s=1), clock=lambda: 1)
        current = [False]
        intake.use(PromptLog(asyncio.get_running_loop()), TOPICS, is_current=lambda: current[0])
        feed = intake.open(Hello(source="orders", stream="feed-1"), client="1.2.3.4")
        await feed.open(SequenceNumber(0))
        for number in (1, 2):
            await request_taken(feed, request(number, b"unreadable"), CERTAIN)
        await asyncio.sleep(0)
        assert feed.acknowledged == 0
        keeper = LogKeeper(
            cast("Any", None),
            cast("Any", SimpleNamespace(application="shop", topics=TOPICS)),
            intake,
            cast("Any", None),
            structlog.get_logger(),
        )
        intake.listed_since_s = lambda: None
        state, reason = keeper._found(asyncio.get_running_loop().time() + 9.0)
        assert (state, "Redis does not answer, so frames get no receipt" in reason) == (State.RUNNING, True)
        current[0] = True
        await feed.opened()
        while (receipt := await feed.receipt()) is not None and receipt.acknowledged < 2:
            pass
        intake.close()
        return feed.acknowledged

    assert asyncio.run(asyncio.wait_for(conversation(), 60)) == 2
