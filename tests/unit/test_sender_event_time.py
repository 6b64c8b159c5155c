"""Event times of clients' messages: the watermarks of their records, and what is refused for its time."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bettong import Application, u32, u64
from bettong.application.plan import plan
from bettong.config.reading import read
from bettong.config.sender import SenderSettings
from bettong.frames.columns import Columns
from bettong.frames.frame import CLOCK_NS_MAX, Frame, FrameKind, decode
from bettong.identifiers import SequenceNumber
from bettong.ingest.care import Care
from bettong.ingest.refusal import Refusal
from bettong.ingest.session import Append, Session, SourceRoute, Taken
from bettong.routing import partition_of
from bettong.v1.ingest_pb2 import Hello, IngestFrame
from bettong_sender.service import routes_of
from tests.samples.sender import (
    PARTITIONS,
    Reading,
    readings,
    readings_frame,
    refused_in,
    route,
    rows_frame,
    sensor_of,
)
from tests.samples.sender import orders as orders_of

US = 1000
HOUR_NS = 3600 * 1_000_000_000
NOW_NS = 1_700_000_000 * 1_000_000_000
HOME = partition_of("orders/feed", PARTITIONS)
AWAY = (HOME + 1) % PARTITIONS
EVERYWHERE = [sensor_of(partition) for partition in range(PARTITIONS)]


def session(of: SourceRoute) -> Session:
    return Session(of, Hello(source="orders", stream="feed"), [-1] * PARTITIONS)


def data(appends: list[Append]) -> dict[int, Frame]:
    """The records of one frame, by partition."""
    frames = [(append.partition, decode(append.value)) for append in appends]
    return {partition: frame for partition, frame in frames if frame.kind is FrameKind.DATA}


def times_in(of: SourceRoute, frame: Frame) -> list[int]:
    if frame.columns is None:
        return []
    return [message.at for message in Columns.of_payload(of.source.schema, frame.columns).messages()]


def watermarks(taken: Taken) -> set[int]:
    found = {frame.watermark_ns for frame in data(taken.appends).values()}
    assert found <= {taken.watermark_ns}
    return found


@pytest.mark.parametrize("key", ["sensor", None, lambda reading: reading.sensor])
def test_every_record_of_a_frame_carries_the_watermark_of_its_origin_which_never_goes_back(key: Any) -> None:
    ours = session(readings(key=key, out_of_order=timedelta(microseconds=3)))
    frames = [
        ([2 * US, 1 * US], 0),  # not yet further than the bound
        ([9 * US, 4 * US], 6 * US),
        ([5 * US], 6 * US),
        ([10 * US], 7 * US),
    ]
    for sequence, (times, expected) in enumerate(frames, 1):
        values = [(sensor, at) for sensor in EVERYWHERE for at in times]
        assert watermarks(ours.take(readings_frame(sequence, *values), 0, NOW_NS)) == {expected}


def test_a_partition_hears_of_messages_that_went_to_others() -> None:
    ours = session(readings())
    ours.take(readings_frame(1, (sensor_of(0), 70)), 0, NOW_NS)
    (frame,) = data(ours.take(readings_frame(2, (sensor_of(1), 20)), 0, NOW_NS).appends).values()
    assert frame.watermark_ns == 70


def test_where_event_time_counts_every_partition_hears_of_a_session_before_its_first_frame() -> None:
    of = readings()
    openings = session(of).open(0, NOW_NS, SequenceNumber(0)).appends
    assert all(opening.opens for opening in openings)
    assert [opening.partition for opening in openings] == list(range(of.partitions))
    assert len(session(replace(of, needs_time=False)).open(0, NOW_NS, SequenceNumber(0)).appends) == 1


def test_a_new_session_knows_nothing_and_no_opening_says_anything() -> None:
    ours = session(readings())
    openings = ours.open(0, NOW_NS, SequenceNumber(0)).appends
    assert {decode(opening.value).watermark_ns for opening in openings} == {0}
    first = ours.take(readings_frame(1, (1, 70)), 0, NOW_NS)
    assert first.watermark_ns == 70
    ours.open(0, NOW_NS, SequenceNumber(1))
    assert ours.take(readings_frame(2, (1, 20)), 0, NOW_NS).watermark_ns == 20


def test_without_an_event_time_it_is_the_ingest_time() -> None:
    ours = session(readings(None, out_of_order=timedelta(microseconds=1)))
    assert watermarks(ours.take(readings_frame(1, (1, 5)), 0, NOW_NS)) == {NOW_NS - US}
    assert watermarks(ours.take(readings_frame(2, (1, 5)), 0, NOW_NS + 7)) == {NOW_NS + 7 - US}


def returns(value: Any) -> Callable[[Reading], int]:
    """A function of readings: sensor 7 has that time, or what it raises; all others have theirs."""

    def event_time(reading: Reading) -> int:
        if reading.sensor != 7:
            return reading.at
        if isinstance(value, BaseException):
            raise value
        return value  # type: ignore[no-any-return]

    return event_time


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (ValueError("no clock"), "the event_time function raised ValueError: no clock"),
        (SystemExit(3), "the event_time function raised SystemExit: 3"),
        (None, "the event_time function returned NoneType, expected an int (Unix nanoseconds)"),
        (1.5e18, "the event_time function returned float, expected an int (Unix nanoseconds)"),
        (True, "the event_time function returned bool, expected an int (Unix nanoseconds)"),
        ("1", "the event_time function returned str, expected an int (Unix nanoseconds)"),
        (-1, f"the event_time function returned -1, expected Unix nanoseconds from 0 to {CLOCK_NS_MAX}"),
        (2**63, f"the event_time function returned {2**63}, expected Unix nanoseconds from 0 to"),
        (10**5000, "the event_time function returned a number of 16610 bits, expected Unix nanoseconds"),
    ],
    ids=["raises", "exits", "none", "float", "bool", "text", "negative", "beyond", "huge"],
)
@pytest.mark.parametrize("key", ["sensor", None])
def test_a_function_that_fails_refuses_its_message_alone(value: Any, reason: str, key: str | None) -> None:
    of = readings(returns(value), key=key)
    taken = session(of).take(readings_frame(1, (3, 50), (7, 60), (3, 40)), 0, NOW_NS)
    (refused,) = taken.refused
    assert refused.reason.startswith(reason)
    assert (refused.index, refused.message, refused.as_received) == (1, b'{"sensor":7,"at":60}', False)
    records = data(taken.appends)
    assert [each.index for each in refused_in(records[HOME])] == [1]
    assert [at for record in records.values() for at in times_in(of, record)] == [50, 40]
    assert watermarks(taken) == {50}
    assert taken.messages == 3


def test_a_field_that_is_no_time_refuses_its_message_alone() -> None:
    of = readings()
    taken = session(of).take(readings_frame(1, (3, 50), (3, -1), (3, 40), (3, -(2**63))), 0, NOW_NS)
    assert [(each.index, each.reason) for each in taken.refused] == [
        (
            index,
            f"its event time is {value}, expected Unix nanoseconds from 0 to {CLOCK_NS_MAX} (in the year 2262)",
        )
        for index, value in ((1, -1), (3, -(2**63)))
    ]
    assert [at for record in data(taken.appends).values() for at in times_in(of, record)] == [50, 40]
    assert watermarks(taken) == {50}


@dataclass
class Unsigned:
    """A message whose time has no sign."""

    sensor: u32
    at: u64


@pytest.mark.parametrize("at", [2**63, 2**64 - 1])
def test_a_time_beyond_2262_is_refused(at: int) -> None:
    app = Application("shop")
    app.source("orders", schema=Unsigned, key="sensor", event_time="at").sink("all")
    source = app.sources[0]
    columns = Columns.of_messages(source.schema, [Unsigned(1, 2**62), Unsigned(1, at), Unsigned(1, 5)])
    ours = session(replace(route(source), needs_time=True))
    taken = ours.take(IngestFrame(sequence=1, columns=columns.payload()), 0, 2**62)
    assert [each.index for each in taken.refused] == [1]
    assert watermarks(taken) == {2**62}


def test_what_is_too_far_ahead_is_refused_and_moves_no_watermark() -> None:
    of = readings(max_lead=timedelta(hours=1))
    latest = NOW_NS + HOUR_NS
    here = sensor_of(AWAY)
    taken = session(of).take(
        readings_frame(1, (here, 50), (here, latest + 1), (here, CLOCK_NS_MAX)), 0, NOW_NS
    )
    assert [each.index for each in taken.refused] == [1, 2]
    assert taken.refused[0].reason == (
        "its event time is 3600.000 s ahead of the sender's clock, at most 3600 s are taken (max_lead): correct the"
        " clock that set it, or the sender's"
    )
    assert watermarks(taken) == {50}
    at_the_bound = session(of).take(readings_frame(1, (here, latest)), 0, NOW_NS)
    assert (at_the_bound.refused, at_the_bound.watermark_ns) == ((), latest)


def test_a_frame_of_refused_messages_alone_says_what_was_known_before() -> None:
    ours = session(readings())
    assert watermarks(ours.take(readings_frame(1, (1, NOW_NS + 2 * HOUR_NS)), 0, NOW_NS)) == {0}
    ours.take(readings_frame(2, (1, 30)), 0, NOW_NS)
    assert watermarks(ours.take(readings_frame(3, (1, -5)), 0, NOW_NS)) == {30}
    by_clock = session(readings(None, key=lambda _: 1 // 0))
    assert watermarks(by_clock.take(readings_frame(1, (1, 5)), 0, NOW_NS)) == {0}


def test_on_error_holds_for_event_times_too() -> None:
    early = readings_frame(1, (1, 30), (1, NOW_NS + 2 * HOUR_NS), (1, -5))
    skipping = session(readings(on_error="skip")).take(early, 0, NOW_NS)
    assert (skipping.refused, skipping.skipped, skipping.messages) == ((), 2, 3)
    with pytest.raises(Refusal, match=r"message 1: its event time is 7200\.000 s ahead of .* 2 message"):
        session(readings(on_error="stop")).take(early, 0, NOW_NS)


_times = st.sampled_from([10, -5, NOW_NS + HOUR_NS, NOW_NS + HOUR_NS + 1, NOW_NS + 2 * HOUR_NS, 2**62])


@settings(deadline=None)  # the first example compiles
@given(
    values=st.lists(st.tuples(st.sampled_from(EVERYWHERE), _times), min_size=1, max_size=12),
    later_ns=st.integers(-HOUR_NS, 2 * HOUR_NS),
    key=st.sampled_from(["sensor", None]),
    # Of each partition, whether the record of the first attempt came to the log.
    came=st.lists(st.booleans(), min_size=PARTITIONS, max_size=PARTITIONS),
)
def test_sent_again_at_another_time_each_message_is_there_once_as_message_or_dead_letter(
    values: list[tuple[int, int]], later_ns: int, key: str | None, came: list[bool]
) -> None:
    of, frame = readings(key=key), readings_frame(1, *values)
    first = data(session(of).take(frame, 0, NOW_NS).appends)
    again = data(session(of).take(frame, 0, NOW_NS + later_ns).appends)
    assert first.keys() == again.keys(), "a consumer of another partition would miss it, or have it twice"
    counted = [first[partition] if came[partition] else again[partition] for partition in first]
    refused = [values[each.index][1] for record in counted for each in refused_in(record)]
    taken = [at for record in counted for at in times_in(of, record)]
    assert sorted(refused + taken) == sorted(at for _, at in values)
    assert all(NOW_NS + max(0, later_ns) + HOUR_NS >= at >= 0 for at in taken)


def test_columns_are_kept_from_the_event_time_function_that_killed_a_sender() -> None:
    def event_time(reading: Reading) -> int:
        assert reading.sensor != 7
        return reading.at

    touched: list[int] = []
    ours = session(readings(event_time))
    care = Care(touched.append, {1: "it killed the sender"})
    shares = ours.read(readings_frame(1, (3, 50), (7, 60), (3, 40)), NOW_NS, care=care)
    assert touched == [0, 2]
    assert [(each.index, each.reason) for each in shares.refused] == [(1, "it killed the sender")]
    plain = session(readings(event_time)).read(readings_frame(1, (3, 50), (3, 40)), NOW_NS, care=None)
    careful = session(readings(event_time)).read(
        readings_frame(1, (3, 50), (3, 40)), NOW_NS, care=Care(lambda _: None)
    )
    assert plain == careful


def test_columns_whose_event_time_is_a_field_are_never_refused_for_deaths() -> None:
    care = Care(lambda _: None, all_refused="it killed the sender")
    assert session(readings()).read(readings_frame(1, (3, 50)), NOW_NS, care=care).refused == ()


# Of the same frames, as they were written before there were event times.
WITHOUT_TIME = "f62e66b688e94904d6fcd5c87f0d20d95b7267c489a8d440642e96f57e68e8ad"


def test_a_source_whose_stage_needs_no_time_writes_what_it_always_wrote() -> None:
    digest = hashlib.sha256()
    ours = Session(route(), Hello(source="orders", stream="feed", acknowledged=2), [-1] * PARTITIONS)
    appends = ours.open(0, NOW_NS, SequenceNumber(2)).appends
    for sequence in range(3, 9):
        spoilt = [b"unreadable %d" % sequence] if sequence % 2 else []
        frame = rows_frame(sequence, orders_of(range(sequence, 3 * sequence)), spoilt=spoilt)
        appends += ours.take(frame, 20 * sequence, NOW_NS + sequence).appends
    appends += ours.end(999, NOW_NS + 9).appends
    for append in appends:
        digest.update(
            b"%s %d %d " % (append.topic.encode(), append.partition, len(append.value)) + append.value
        )
    assert digest.hexdigest() == WITHOUT_TIME


def test_event_times_are_not_even_looked_at_where_the_stage_needs_none() -> None:
    def never(reading: Reading) -> int:
        raise AssertionError(reading)

    plain, timed = (replace(readings(of), needs_time=False) for of in (None, never))
    frame = readings_frame(1, (3, -1), (4, 2**62), (5, 7))
    assert session(plain).take(frame, 0, NOW_NS) == session(timed).take(frame, 0, NOW_NS)


def test_a_route_says_what_the_plan_says() -> None:
    app = Application("shop")
    app.source("orders", schema=Reading, key="sensor", event_time="at").sink("all")
    planned = plan(app)
    stage = planned.stage_of("orders")
    for needs_time in (False, True):
        of = replace(planned, stages=(replace(stage, needs_time=needs_time),))
        found = routes_of(of, read(SenderSettings, {"application": "app.py"}))
        assert found["orders"].needs_time is needs_time
