"""Event time by a field of datetimes: as by the same instants in nanoseconds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import bettong
from bettong import Application, ApplicationError
from bettong.application.event_time import EventTime
from bettong.application.nodes.source import Source
from bettong.application.plan import StageInput
from bettong.application.streams import Stream
from bettong.frames.columns import Columns
from bettong.frames.frame import Frame
from bettong.identifiers import Origin, SequenceNumber
from bettong.ingest.body import Body
from bettong.ingest.event_times import judge_event_times
from bettong.schema.schema import schema_of
from bettong.worker.event_times import event_times_of


@dataclass
class Attempt:
    """When it happened, in both forms."""

    card: str
    at: datetime
    at_ns: bettong.i64


SCHEMA = schema_of(Attempt)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NOW_NS = 1_800_000_000_000_000_000


def attempt(at: datetime) -> Attempt:
    """At that time."""
    return Attempt("a", at, (at - EPOCH) // timedelta(microseconds=1) * 1000 if at.year < 2262 else 2**63 - 1)


TIMES = [
    EPOCH,
    EPOCH + timedelta(microseconds=1),
    datetime(2026, 1, 1, tzinfo=UTC),
    datetime(2027, 1, 1, tzinfo=UTC),
]
COLUMNS = Columns.of_messages(SCHEMA, [attempt(each) for each in TIMES])


def source_of(stream: Stream[Any]) -> Source:
    assert isinstance(stream.node, Source)
    return stream.node


def test_a_sender_judges_datetimes_as_the_same_nanoseconds() -> None:
    found = []
    for name in ("at", "at_ns"):
        source = Application("a").source("attempts", schema=Attempt, key="card", event_time=name)
        timed = judge_event_times(source_of(source), Body(COLUMNS), NOW_NS)
        assert timed.times is not None
        found.append((timed.times.tolist(), timed.highest_ns, timed.wrong, timed.early))
    assert found[0] == found[1]
    assert found[0][0] == [message.at_ns for message in COLUMNS.messages()]


def test_times_before_1970_and_after_2262_are_refused_with_the_datetime() -> None:
    source = Application("a").source("attempts", schema=Attempt, key="card", event_time="at")
    times = [EPOCH - timedelta(microseconds=1), TIMES[2], datetime(9999, 1, 1, tzinfo=UTC)]
    columns = Columns.of_messages(SCHEMA, [attempt(each) for each in times])
    timed = judge_event_times(source_of(source), Body(columns), NOW_NS)
    assert timed.kept is not None
    assert timed.kept.tolist() == [1]
    assert [each.index for each in timed.wrong] == [0, 2]
    assert [each.reason for each in timed.wrong] == [
        f"its event time is {time}, expected one from 1970 to 2262" for time in (times[0], times[2])
    ]


def test_a_worker_reads_them_and_a_message_without_one_has_the_ingest_time() -> None:
    columns = Columns.of_messages(
        SCHEMA,
        [attempt(each) for each in (*TIMES, EPOCH - timedelta(days=1), datetime(2300, 1, 1, tzinfo=UTC))],
    )
    entry = StageInput("attempts", SCHEMA, "card", EventTime("at"))
    frame = Frame(
        origin=Origin("attempts/a"), sequence=SequenceNumber(1), previous=SequenceNumber(0), ingest_ns=77
    )
    found = event_times_of(entry, columns, frame).values().tolist()
    assert found == [*COLUMNS.columns[2].tolist(), 77, 77]


@dataclass
class Loose:
    """May lack a time."""

    card: str
    at: datetime | None


def test_a_field_that_may_lack_a_time_is_none() -> None:
    with pytest.raises(ApplicationError, match="expected a field of datetimes, or of 64-bit integers"):
        Application("a").source("attempts", schema=Loose, key="card", event_time="at")
