"""Which windows are open, what holds them and since when: from a fold's record to the text for users."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from io import StringIO
from itertools import pairwise

import pytest
from rich.console import Console

import bettong
from bettong.application.plan import plan
from bettong.application.windows.kinds import WindowKind
from bettong.cli.watermark_texts import clock_text, show_watermarks, window_texts
from bettong.event_progress import DueComputation, DueKind, EventProgress, InputProgress
from bettong.frames.columns import Columns
from bettong.frames.frame import Frame, FrameKind, encode, tick_record
from bettong.identifiers import Origin, PartitionId, SequenceNumber
from bettong.inspection.open_windows import (
    OpenWindow,
    WaitsFor,
    hold_of,
    input_watermarks,
    open_windows,
)
from bettong.inspection.overview import PartitionRow, partition_rows
from bettong.schema.schema import schema_of
from bettong.worker.partition import PartitionWorker
from bettong.worker.stage_program import StageProgram, program
from bettong_processor.reporting import metrics_of
from tests.samples.event_time import STAGE, Visit, programs, visits
from tests.samples.worker import fold, tick, worker

S = 1_000_000_000
NOON_NS = 1_800_014_400 * S  # 15 January 2027, 12:00:00 UTC
IDLE_S = 60


@dataclass
class Order:
    """At a time."""

    who: bettong.u32
    at: int


@dataclass
class Count:
    """Of a window."""

    key: bettong.u32
    count: bettong.i64


def counted(kind: WindowKind, *, compiled: bool = False) -> StageProgram:
    """Orders and returns of clients, counted by windows."""
    app = bettong.Application("meters")
    idle = timedelta(seconds=IDLE_S)
    orders = app.source("orders", schema=Order, key="who", event_time="at", idle_timeout=idle)
    returns = app.source("returns", schema=Order, key="who", event_time="at", idle_timeout=None)
    both = orders.merge(returns)
    aggregated = bettong.aggregate(Count, count=bettong.Count())
    both.window(kind, bettong.compiled(aggregated) if compiled else aggregated, name="per_minute").sink("out")
    (stage,) = plan(app).stages
    return program(stage, compiled=compiled)


MINUTES = counted(bettong.tumbling(timedelta(minutes=5)))


def sent(origin: str, number: int, *at_s: float, log_s: float, before: int | None = None) -> bytes:
    """Orders of a client at seconds after noon, whose watermark is the newest of them."""
    found = [Order(1, NOON_NS + int(each * S)) for each in at_s]
    schema = schema_of(Order)
    return encode(
        Frame(
            origin=Origin(origin),
            sequence=SequenceNumber(number),
            previous=SequenceNumber(number - 1 if before is None else before),
            count=len(found),
            schema=schema.fingerprint,
            ingest_ns=NOON_NS + int(log_s * S),
            watermark_ns=max(each.at for each in found),
            columns=Columns.of_messages(schema, found).payload(),
        )
    )


def row(of: PartitionWorker, *, lag: int = 0, partition: int = 0) -> PartitionRow:
    """As the record of the worker, through Redis, is shown."""
    record = {name: str(value) for name, value in metrics_of(of).items()}
    id_ = PartitionId(of.id.stage, partition)
    (found,) = partition_rows({}, {id_: record}, begins={id_: 0}, ends={id_: of.next_offset + lag})
    return found


def held() -> PartitionWorker:
    """Of two clients one is at 12:06:40, the other has stopped at 12:04:31; the log clock is 12:06:42."""
    found = worker(MINUTES)
    fold(
        found,
        [
            sent("orders/feed-1", 1, 200, log_s=201),
            sent("orders/feed-2", 1, 240, 271, log_s=309),
            sent("orders/feed-1", 2, 400, log_s=347),
        ],
    )
    return found


def at_s(seconds: float) -> int:
    return NOON_NS + int(seconds * S)


def words(window: OpenWindow, now_ns: int) -> str:
    """In one line."""
    (text,) = window_texts([window], now_ns)
    return " ".join(text.split())


def test_the_origin_that_holds_a_window_open_is_named_with_since_when_and_until_when() -> None:
    (found,) = open_windows([row(held())], at_s(347))
    assert (found.stage, found.computation, found.kind) == (MINUTES.stage.name, "per_minute", DueKind.WINDOW)
    assert (found.start_ns, found.end_ns, found.due_ns) == (NOON_NS, at_s(300), at_s(300))
    assert (found.short_s, found.partitions) == (29.0, 1)
    own = found.hold.input
    assert own is not None
    assert (found.hold.waits_for, own.source, own.stream, own.live) == (
        WaitsFor.ORIGIN,
        "orders",
        "feed-2",
        2,
    )
    assert (own.watermark_ns, own.since_ns, own.at_least) == (at_s(271), at_s(309), False)
    assert (own.silent_s, own.idle_s, own.idle_at_ns) == (38.0, IDLE_S, at_s(369))


def test_it_is_said_in_words_of_80_columns() -> None:
    (text,) = window_texts(open_windows([row(held())], at_s(347)), at_s(347))
    stage = MINUTES.stage.name
    assert " ".join(text.split()) == (
        "window 12:00:00\u201312:05:00 of `per_minute` is open in one partition: "
        f"{stage}/0 is at 12:04:31, 29 s short: origin `feed-2` of source `orders` holds it (event time 12:04:31, has"
        " not moved since 12:05:09, silent for 38 s; idle after 60 s, at 12:06:09)"
    )
    assert max(map(len, text.splitlines())) <= 80


def test_what_closes_a_window_is_what_was_said_to_close_it() -> None:
    of = held()
    (window,) = open_windows([row(of)], at_s(347))
    own = window.hold.input
    assert own is not None
    assert own.idle_at_ns is not None
    fold(of, [tick(own.idle_at_ns - 1)])
    assert of.counters.results == 0
    fold(of, [tick(own.idle_at_ns)])
    assert of.counters.results == 1
    (later,) = open_windows([row(of)], at_s(369))
    assert (later.start_ns, later.hold.input and later.hold.input.stream) == (at_s(300), "feed-1")


def test_the_watermark_that_closes_a_window_closes_it_and_less_does_not() -> None:
    of = held()
    (window,) = open_windows([row(of)], at_s(347))
    fold(of, [tick_record("orders", at_s(348), {Origin("orders/feed-2"): window.due_ns - 1})])
    assert of.counters.results == 0
    assert open_windows([row(of)], at_s(348))[0].short_s == pytest.approx(0, abs=1e-6)
    fold(of, [tick_record("orders", at_s(349), {Origin("orders/feed-2"): window.due_ns})])
    assert of.counters.results == 1


def test_a_delay_is_part_of_when_a_window_closes_not_of_the_window() -> None:
    of = worker(counted(bettong.tumbling(timedelta(minutes=5), delay=timedelta(seconds=20))))
    fold(of, [sent("orders/a", 1, 10, log_s=11)])
    (window,) = open_windows([row(of)], at_s(11))
    assert (window.end_ns, window.due_ns, window.short_s) == (at_s(300), at_s(320), 310.0)
    assert "is open in one partition, at a watermark of 12:05:20:" in words(window, at_s(11))


@pytest.mark.parametrize("compiled", [False, True])
def test_sliding_windows_are_told_alike_whatever_speed(*, compiled: bool) -> None:
    of = worker(counted(bettong.sliding(timedelta(seconds=60), timedelta(seconds=20)), compiled=compiled))
    fold(of, [sent("orders/a", 1, 30, log_s=31)])
    (window,) = open_windows([row(of)], at_s(31))
    assert (window.start_ns, window.end_ns) == (at_s(-20), at_s(40))


def test_sessions_say_that_they_may_go_on() -> None:
    of = worker(counted(bettong.sessions(timedelta(seconds=30))))
    fold(of, [sent("orders/a", 1, 10, log_s=11)])
    (window,) = open_windows([row(of)], at_s(11))
    assert (window.kind, window.start_ns, window.due_ns) == (DueKind.SESSION, None, at_s(40) + 1)
    assert "until 12:00:40 at the earliest" in words(window, at_s(11))


def test_while_records_wait_nobody_is_called_silent_for_what_lies_among_them() -> None:
    (found,) = open_windows([row(held(), lag=7)], at_s(5000))
    assert (found.hold.waits_for, found.hold.waiting_records) == (WaitsFor.RECORDS, 7)
    assert found.hold.input is not None
    assert found.hold.input.silent_s == 38.0, "by the log clock: the rest is not read yet"
    assert "7 records of its log are not folded yet" in words(found, at_s(5000))


def standing(moved_s: float, heard_s: float) -> EventProgress:
    """A minute is open by an origin whose event time rose last then; the log clock is two hours after noon."""
    own = InputProgress(
        "orders", 4, 0, Origin("orders/feed-2"), at_s(0), at_s(heard_s), at_s(moved_s), IDLE_S * S
    )
    due = DueComputation("per_minute", DueKind.WINDOW, at_s(60), at_s(0), at_s(60))
    return EventProgress(at_s(7200), (own,), (due,))


def waiting(lag: int, progress: EventProgress) -> PartitionRow:
    found = PartitionRow("orders", 0, 100, None, 0, lag, None, None, None, unfolded=lag)
    return replace(found, watermark_ns=at_s(0), event_progress=progress)


def test_under_load_who_has_stood_for_longer_than_records_wait_is_named_with_since_when_and_until_when() -> (
    None
):
    rests, loaded = (
        words(open_windows([waiting(lag, standing(1, 7199))], at_s(7201))[0], at_s(7201)) for lag in (0, 3)
    )
    assert "origin `feed-2` of source `orders` holds it (event time 12:00:00, has not moved since" in rests
    for said in ("feed-2` of source `orders` holds it", "since 12:00:01", "idle after 60 s, at 14:00:59"):
        assert said in rests
        assert said in loaded
    assert "3 records of its log are not folded yet" in loaded
    assert "not folded" not in rests


def test_an_origin_that_moved_within_the_time_that_records_wait_is_not_to_blame() -> None:
    (found,) = open_windows([waiting(3, standing(7198, 7199))], at_s(7203))
    assert (found.hold.waits_for, found.hold.waiting_records) == (WaitsFor.RECORDS, 3)
    (found,) = open_windows([waiting(3, standing(7198, 7199))], at_s(7201))
    assert (found.hold.waits_for, found.hold.waiting_records) == (WaitsFor.ORIGIN, 3)


def test_with_nobody_live_the_clock_closes_what_is_open() -> None:
    of = worker(MINUTES)
    fold(of, [sent("orders/a", 1, 100, log_s=101)])
    end = Frame(
        origin=Origin("orders/a"),
        sequence=SequenceNumber(1),
        previous=SequenceNumber(1),
        kind=FrameKind.END,
        ingest_ns=at_s(102),
        watermark_ns=at_s(100),
    )
    fold(of, [encode(end)])
    (found,) = open_windows([row(of)], at_s(102))
    assert (found.hold.waits_for, found.hold.input, found.short_s) == (WaitsFor.CLOCK, None, 200.0)
    assert "closes in 3 min" in words(found, at_s(102))
    fold(of, [tick(at_s(302) - 1)])
    assert of.counters.results == 0
    fold(of, [tick(at_s(302))])
    assert of.counters.results == 1


def test_a_source_that_waits_for_ever_is_said_to() -> None:
    of = worker(MINUTES)
    fold(of, [sent("orders/a", 1, 200, log_s=201), sent("returns/b", 1, 50, log_s=202)])
    (found,) = open_windows([row(of)], at_s(900))
    own = found.hold.input
    assert own is not None
    assert (own.source, own.idle_s, own.idle_at_ns) == ("returns", None, None)
    assert "however long it is silent" in words(found, at_s(900))
    by_input = input_watermarks([row(of)], at_s(900))
    assert [(each.source, each.watermark_ns) for each in by_input] == [
        ("orders", at_s(200)),
        ("returns", at_s(50)),
    ]


def test_one_origin_that_says_no_time_is_what_is_waited_for() -> None:
    of = worker(MINUTES)
    opened = Frame(
        origin=Origin("orders/new"),
        sequence=SequenceNumber(0),
        previous=SequenceNumber(0),
        kind=FrameKind.OPEN,
        ingest_ns=at_s(1),
    )
    fold(of, [encode(opened), sent("orders/a", 1, 100, log_s=2)])
    (found,) = open_windows([row(of)], at_s(2))
    assert (found.hold.waits_for, found.short_s) == (WaitsFor.EVENT_TIME, None)
    assert "origin `new` of source `orders` has sent no event time yet" in words(found, at_s(2))


@pytest.mark.parametrize("lag", [0, 7])
def test_a_partition_of_the_stage_before_that_said_nothing_is_named(lag: int) -> None:
    first, second = programs()
    one = worker(first)
    given_ = fold(one, [visits("a", 1, [Visit(0, 1, 50)], log_ns=1, watermark_ns=50)])
    behind = worker(second, partitions=2)
    fold(behind, [each.value for each in given_ if each.topic == STAGE])
    hold = hold_of(row(behind, lag=lag), 9)
    assert (hold.waits_for, hold.waiting_records) == (WaitsFor.PARTITION, lag or None)
    assert hold.input is not None
    assert (hold.input.is_of_stage, hold.input.source, hold.input.stream) == (True, "visits", "1")
    assert (hold.input.awaited, hold.input.since_ns, hold.input.silent_s) == (1, None, None)


def test_the_same_window_of_many_partitions_is_one_and_the_slowest_partition_is_named() -> None:
    fast = worker(MINUTES)
    fold(fast, [sent("orders/feed-1", 1, 250, log_s=251)])
    of_fast, of_held = row(fast, partition=0), row(held(), partition=3)
    slower = replace(of_held, watermark_ns=at_s(249))
    for rows in ([of_fast, slower], [slower, of_fast]):
        (found,) = open_windows(rows, at_s(347))
        assert (found.partitions, found.hold.id.partition) == (2, 3)


def test_the_oldest_windows_come_first_and_their_number_is_bounded() -> None:
    rows = []
    for number in range(30):
        due = DueComputation("w", DueKind.TIMER, at_s(1000 - number))
        progress = EventProgress(at_s(0), (), (due,))
        rows.append(
            PartitionRow(
                "s", number, 0, None, 0, 0, None, None, None, watermark_ns=1, event_progress=progress
            )
        )
    found = open_windows(rows, at_s(0), 12)
    assert len(found) == 12
    assert all(one.due_ns < other.due_ns for one, other in pairwise(found))
    assert found[0].hold.id.partition == 29


def test_a_worker_that_took_over_knows_that_it_may_have_stood_for_longer() -> None:
    taken_over = worker(MINUTES)
    taken_over.restore(held().snapshot())
    (found,) = open_windows([row(taken_over)], at_s(347))
    own = found.hold.input
    assert own is not None
    assert (own.since_ns, own.at_least, own.silent_s) == (at_s(309), True, 38.0)
    assert "since 12:05:09 or before" in words(found, at_s(347))


def test_an_origin_that_is_heard_of_and_does_not_move_has_stood_since_it_moved() -> None:
    of = held()
    fold(of, [sent("orders/feed-2", 2, 100, log_s=350)])
    (found,) = open_windows([row(of)], at_s(355))
    own = found.hold.input
    assert own is not None
    assert (own.since_ns, own.silent_s, own.idle_at_ns) == (at_s(309), 5.0, at_s(410))


def shown(rows: Sequence[PartitionRow], now_ns: int) -> str:
    text = StringIO()
    show_watermarks(list(rows), Console(file=text, width=80, highlight=False), now_ns)
    return text.getvalue()


def test_status_shows_it_in_80_columns() -> None:
    text = shown([row(held())], at_s(347))
    assert max(map(len, text.splitlines())) <= 80
    head, orders, returns = (line.split() for line in text.splitlines()[:3])
    assert head == ["input", ">", "read", "by", "event", "time", "behind", "held", "by", "since", "silent"]
    assert orders[0] == "orders"
    assert orders[3:] == ["12:04:31", "76", "s", "feed-2", "12:05:09", "38", "s"]
    assert returns[3:] == ["none", "live"]
    assert "window 12:00:00\u201312:05:00" in text


def test_status_says_so_where_nothing_goes_by_event_time_or_is_open() -> None:
    assert shown([PartitionRow("s", 0, 0, None, 0, 0, None, None, None)], 5).startswith(
        "no partition reports"
    )
    assert "no window is open" in shown([row(worker(MINUTES))], at_s(0))


def test_names_are_no_markup_for_the_terminal() -> None:
    own = InputProgress("[red]in", 1, 0, Origin("[red]in/[bold]a"), at_s(1), at_s(2), at_s(2), None)
    due = DueComputation("[blink]w", DueKind.TIMER, at_s(9))
    progress = EventProgress(at_s(3), (own,), (due,))
    text = shown(
        [
            PartitionRow(
                "s", 0, 0, None, 0, 0, None, None, None, watermark_ns=at_s(1), event_progress=progress
            )
        ],
        at_s(3),
    )
    for name in ("[red]in", "[bold]a", "[blink]w"):
        assert name in text


def test_times_of_other_days_have_their_date() -> None:
    assert clock_text(at_s(1), at_s(0)) == "12:00:01"
    assert clock_text(at_s(1.25), at_s(0)) == "12:00:01.250"
    assert clock_text(at_s(-86_400), at_s(0)) == "2027-01-14 12:00:00"
    assert clock_text(2**63 - 1, at_s(0)) == "2262-04-11 23:47:16.854"
