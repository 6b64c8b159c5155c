"""A sender says in its log where functions of users raise: each place once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import structlog
from structlog.testing import capture_logs

from bettong.errors import LogError
from bettong.frames.refused import Refused
from bettong.identifiers import SequenceNumber, TopicPartition
from bettong.user_errors import Reason
from bettong.v1.ingest_pb2 import Hello
from bettong_sender.intake import Intake, Limits
from bettong_sender.refusal_log import RefusalLog
from bettong_sender.status import SenderStatus
from tests.samples.sender import orders, route, rows_frame, source, taken

LIMITS = Limits(credits=4, sessions_max=8, buffer_bytes_max=1 << 20)
LINES = ("shop.py:3 in parse", "shop.py:7 in number")


@pytest.fixture
def logged() -> Iterator[list[Any]]:
    with capture_logs() as found:
        yield found


class TakingLog:
    """Takes all at once."""

    def __init__(self) -> None:
        self._ends: Counter[TopicPartition] = Counter()

    def append(
        self,
        to: TopicPartition,
        value: bytes,
        on_done: Callable[[int | LogError], None],
        *,
        traceparent: bytes = b"",
    ) -> None:
        """See Log."""
        del value, traceparent
        self._ends[to] += 1
        on_done(self._ends[to] - 1)


def test_frames_whose_messages_fail_at_one_place_are_one_line(logged: list[Any]) -> None:
    def fails(_order: object) -> str:
        raise KeyError("no symbol")

    async def conversation() -> None:
        routes = {"orders": route(source(fails))}
        intake = Intake("shop", routes, LIMITS, SenderStatus(since_s=1), clock=lambda: 1)
        intake.refusal_log = RefusalLog(structlog.get_logger())
        intake.use(TakingLog(), {})
        feed = intake.open(Hello(source="orders", stream="feed-1"), client="1.2.3.4")
        await feed.open(SequenceNumber(0))
        for sequence in (1, 2):
            await taken(feed, rows_frame(sequence, orders(range(3)), spoilt=[b"no order"]))
        feed.close()
        intake.close()

    asyncio.run(conversation())
    (found,) = logged
    assert found["event"] == "messages fail in a user's function"
    assert (found["source"], found["reason"]) == ("orders", "the key function raised KeyError: 'no symbol'")
    line = fails.__code__.co_firstlineno + 1
    assert found["traceback"][-1].startswith(f"tests/unit/test_refusal_log.py:{line} in ")


def test_each_class_of_error_is_a_line_and_what_raised_nothing_is_none(logged: list[Any]) -> None:
    log = RefusalLog(structlog.get_logger())
    refused = [
        Refused(0, "5 bytes, expected 18", b"short", as_received=True),
        Refused(1, Reason("ValueError: a", LINES), b"", as_received=True),
        Refused(2, Reason("ValueError: b", LINES), b"", as_received=True),
        Refused(3, Reason("KeyError: a", LINES), b"", as_received=True),
    ]
    log.note("orders", refused)
    log.note("orders", refused)
    assert [(each["source"], each["reason"]) for each in logged] == [
        ("orders", "ValueError: a"),
        ("orders", "KeyError: a"),
    ]
