"""Records that name a version: one a partition, and what the log answers."""

from __future__ import annotations

from typing import Any, Self, cast

import pytest
import structlog

from bettong.clocks import CheckedClock
from bettong.edges.kafka_log import LogWriter
from bettong.edges.redis_store import RedisStore
from bettong.errors import LogError, LogUnavailableError
from bettong.frames.frame import FrameKind, decode
from bettong.identifiers import ReferenceVersion, TopicPartition
from bettong_processor.references.naming import Naming

VERSION = ReferenceVersion("prices-0123456789abcdef-0", 3, bytes(32))


class Log:
    """Answers what a test has set for each partition."""

    def __init__(self, answers: list[int | LogError]) -> None:
        self.answers = answers
        self.appended: list[tuple[TopicPartition, bytes]] = []
        self.is_open = False

    def __enter__(self) -> Self:
        self.is_open = True
        return self

    def __exit__(self, *ended: object) -> None:
        self.is_open = False

    def append(self, to: TopicPartition, value: bytes, on_done: Any) -> None:
        assert self.is_open
        self.appended.append((to, value))
        on_done(self.answers[to.partition])


class Redis:
    def time_ns(self) -> int:
        return 40


def naming(log: Log) -> Naming:
    return Naming(
        "shop",
        len(log.answers),
        connect=lambda: cast("LogWriter", log),
        clock=CheckedClock(lambda: 17, structlog.get_logger()),
        redis=cast("RedisStore", Redis()),
    )


def test_each_partition_gets_a_record_and_where_it_lies_is_known() -> None:
    log = Log([5, 0, 2**40])
    assert naming(log).name("orders", VERSION) == {0: 5, 1: 0, 2: 2**40}
    assert [to for to, _ in log.appended] == [
        TopicPartition("shop.stage.orders", number) for number in range(3)
    ]
    for _, value in log.appended:
        frame = decode(value)
        assert (frame.kind, frame.reference, frame.ingest_ns) == (FrameKind.REFERENCE, VERSION, 17)
    assert not log.is_open


def test_what_the_log_refuses_is_raised_and_the_writer_closed() -> None:
    log = Log([5, LogUnavailableError("the log is away"), 7])
    with pytest.raises(LogUnavailableError, match="the log is away"):
        naming(log).name("orders", VERSION)
    assert not log.is_open
