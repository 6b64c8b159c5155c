"""Accounts: each message is used, filtered, late, a dead letter or skipped; what one returns, the next one receives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from io import StringIO
from itertools import pairwise
from typing import Any

import pytest
from rich.console import Console
from rich.table import Table

from bettong import Application
from bettong.application.plan import Plan, plan
from bettong.cli.account_tables import accounts_table
from bettong.cli.account_tables import differences as differences_shown
from bettong.errors import PoisonError
from bettong.frames.frame import decode, encode
from bettong.identifiers import PartitionId, SequenceNumber
from bettong.inspection.accounts import account_lines
from bettong.inspection.overview import PartitionRow, partition_rows
from bettong.snapshots import snapshot as codec
from bettong.testing import AppSession, check, watermark
from bettong.testing.memory_processor import AtEachRecord
from bettong.testing.running import ReadyApplication
from bettong.worker.balance import AccountKind, Balance, PartitionAccounts, balance, differences
from bettong.worker.batch import Batch
from bettong.worker.exclusions import Excluded, Exclusion
from bettong.worker.joins.sides import StreamReads
from bettong.worker.operators.map import MapOperator
from bettong.worker.output.framing import OutputRecord
from bettong.worker.output.routing import Router
from bettong.worker.partition import PartitionWorker
from bettong.worker.stage_program import program
from tests.samples.accounts import (
    FUNCTIONS,
    Order,
    Rate,
    chain,
    doubled,
    every_kind,
    is_positive,
    taken_and_given,
)
from tests.samples.worker import Reading, data, meters, worker

US = 1000
VALUES = [1, -1, 13, 5, 10, 10, 7, 13, 0, 4, 13]
# The counts of these: in, used, filtered, late, dead letters, skipped, out.
OF_CHAIN = {
    "input orders": (11, None, None, 0, 0, 0, 11),
    "input ?": (0, None, None, 0, 0, 0, 0),
    "positive": (11, 6, 2, 0, 3, 0, 6),
    "double": (6, 5, None, 0, 1, 0, 5),
    "parts": (5, 5, None, 0, 0, 0, 10),
    "totals": (5, 3, None, 0, 2, 0, 2),
    "output to-parts": (10, None, None, 0, 0, 0, 10),
    "output to-totals": (2, None, None, 0, 0, 0, 2),
}
AT_EACH_RECORD = [None, *AtEachRecord]


def orders_of(values: Sequence[int]) -> list[Order]:
    return [Order(number % 3, 1, value) for number, value in enumerate(values)]


@cache
def ready(speed: str) -> ReadyApplication:
    return ReadyApplication(chain(speed), compiled=speed == "compiled")


@pytest.mark.parametrize("at_each_record", AT_EACH_RECORD, ids=str)
@pytest.mark.parametrize("speed", FUNCTIONS)
def test_they_are_the_same_at_each_speed_however_frames_are_cut_and_whatever_is_replayed(
    speed: str, at_each_record: AtEachRecord | None
) -> None:
    for cuts in ((), (1, 2, 5, 9), range(1, 11)):
        session, messages = AppSession(ready(speed), at_each_record=at_each_record), orders_of(VALUES)
        for start, stop in pairwise((0, *cuts, len(messages))):
            session.step(("orders", messages[start:stop]))
        assert taken_and_given(session.outcome) == OF_CHAIN
        assert not differences(session.outcome.accounts)


# Below the watermark arrive an order that is too late for its windows and for the join, and one that is not.
STEPS: list[Any] = [
    ("rates", [Rate(customer, at * US) for customer in (1, 2) for at in (1, 5, 9, 20)]),
    (
        "orders",
        [
            Order(number % 3, (3 * number + 3) * US, value)
            for number, value in enumerate([1, -1, 13, 7, 26, 9, 7, 13, 3, 4, 13, 9, 2])
        ],
    ),
    ("orders", [Order(1, 39 * US, 2), Order(2, 38 * US, 2), Order(2, 30 * US, 19)]),
    ("orders", [Order(2, 2 * US, 3), Order(0, 38 * US, 9)]),
    watermark(10**9),
]
# In, used, filtered, late, dead letters, skipped, out.
OF_EVERY_KIND = {
    "input counts-keyed": (11, None, None, 0, 0, 0, 11),
    "input ?": (0, None, None, 0, 0, 0, 0),
    "counts": (11, 10, None, 1, 0, 0, 8),
    "output counted": (8, None, None, 0, 0, 0, 8),
    "input orders": (18, None, None, 0, 0, 0, 18),
    "input rates": (8, None, None, 0, 0, 0, 8),
    "positive": (18, 14, 1, 0, 3, 0, 14),
    "positive-dead-letters": (18, None, None, 0, 0, 0, 3),
    "small": (14, 7, 7, 0, 0, 0, 7),
    "large": (7, 5, 2, 0, 0, 0, 5),
    "seen": (14, 13, None, 1, 0, 0, 19),
    "seen-late": (14, None, None, 0, 0, 0, 1),
    "pairs": (22, 20, None, 1, 1, 0, 1),
    "rings": (14, 14, None, 0, 0, 0, 3),
    "counts-partials": (12, 12, None, 0, 0, 0, 11),
    "output refused": (3, None, None, 0, 0, 0, 3),
    "output small-ones": (7, None, None, 0, 0, 0, 7),
    "output coded": (5, None, None, 0, 0, 3, 2),
    "output late-ones": (1, None, None, 0, 0, 0, 1),
    "output places": (19, None, None, 0, 2, 0, 17),
    "output pairs-out": (1, None, None, 0, 0, 0, 1),
    "output rung": (3, None, None, 0, 0, 0, 3),
    "output counts-keyed": (11, None, None, 0, 0, 0, 11),
    "input places": (17, None, None, 0, 0, 0, 17),
    "by_place": (17, 17, None, 0, 0, 0, 17),
    "output by-place": (17, None, None, 0, 0, 0, 17),
}


@pytest.mark.parametrize("at_each_record", AT_EACH_RECORD, ids=str)
def test_every_kind_of_computation_has_one(at_each_record: AtEachRecord | None) -> None:
    session = AppSession(every_kind(), at_each_record=at_each_record)
    session.step(*STEPS)
    found = session.finish()
    assert taken_and_given(found) == OF_EVERY_KIND
    assert not differences(found.accounts)
    by_name = {each.name: each for each in found.accounts if each.kind is not AccountKind.OUTPUT}
    # Windows, and timers, have results that no message caused.
    assert by_name["seen"].counts.given_by_time == by_name["seen"].counts.given
    assert (by_name["rings"].counts.given_by_time, by_name["rings"].counts.firings_failed) == (3, 1)
    assert (by_name["counts-partials"].counts.combined, by_name["counts-partials"].counts.given) == (12, 11)
    assert pending_in(found.accounts) == {"places": 0, "counts-keyed": 0}


def pending_in(found: Sequence[Balance]) -> dict[str, int]:
    return {each.name: each.pending for each in found if each.pending is not None}


def test_no_way_to_run_an_application_makes_a_difference() -> None:
    # Timers that messages set anew fire at the ends of frames.
    check(every_kind(has_timers=False), [*STEPS[:2], watermark(10**9)])


def loses_a_row(batches: Sequence[Batch]) -> Sequence[Batch]:
    return [batch.slice(0, batch.length - 1) for batch in batches]


def test_what_a_computation_loses_is_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    given = MapOperator.on_batch
    monkeypatch.setattr(MapOperator, "on_batch", lambda *of: loses_a_row([given(*of)])[0])
    assert found_wrong() == [
        "orders, partition 0: double took 6 messages, and accounts for 5",
    ]


def test_what_is_lost_between_computations_is_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    arriving = StreamReads.arriving
    monkeypatch.setattr(StreamReads, "arriving", lambda *of: loses_a_row(arriving(*of)))
    assert found_wrong()[0] == "orders, partition 0: positive took 10 of the 11 messages that orders gave"


def test_what_is_lost_on_its_way_out_is_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    route = Router.route

    def loses_frames(*of: Any) -> Iterator[OutputRecord]:
        return (record for record in route(*of) if "totals" not in record.topic)

    monkeypatch.setattr(Router, "route", loses_frames)
    assert found_wrong() == [
        "orders, partition 0: to-totals took 2 messages, and accounts for 0",
    ]


def found_wrong() -> list[str]:
    session = AppSession(ready("python"))
    session.step(("orders", orders_of(VALUES)))
    return differences(session.outcome.accounts)


def stages(application: Plan) -> tuple[PartitionWorker, PartitionWorker]:
    first, second = (worker(program(stage, compiled=False)) for stage in application.stages)
    return first, second


READINGS = data("readings/a", 1, [Reading("ab", 3), Reading("cd", 4), Reading("ab", 5)])


def of_both(first: PartitionWorker, second: PartitionWorker, *, is_at_rest: bool = True) -> list[Balance]:
    return balance({each.id: each.accounts.now() for each in (first, second)}, is_at_rest=is_at_rest)


def test_what_is_sent_to_a_stage_is_pending_until_it_comes_in_and_lost_where_nothing_waits() -> None:
    first, second = stages(meters())
    sent = [record.value for record in first.fold(0, READINGS) if record.topic == "meters.stage.places"]
    assert pending_in(of_both(first, second, is_at_rest=False)) == {"places": 3}
    assert not differences(of_both(first, second, is_at_rest=False))
    assert differences(of_both(first, second)) == [
        "places, 3 messages sent to places were not received and are in no log: they are lost"
    ]
    for offset, value in enumerate(sent * 2):  # a repetition counts once
        second.fold(offset, value)
    assert not differences(of_both(first, second))


def test_what_comes_in_under_another_number_is_too_much() -> None:
    first, second = stages(meters())
    (sent,) = [record.value for record in first.fold(0, READINGS) if record.topic == "meters.stage.places"]
    second.fold(0, sent)
    second.fold(1, numbered_anew(sent))
    assert differences(of_both(first, second)) == [
        "places, places received 3 messages more than were sent to it"
    ]


def numbered_anew(value: bytes) -> bytes:
    """The same messages, as another frame."""
    frame = decode(value)
    return encode(replace(frame, sequence=SequenceNumber(frame.sequence + 1), previous=frame.sequence))


def test_a_snapshot_without_accounts_begins_them_and_says_nothing_of_what_was_sent_before() -> None:
    first, second = stages(meters())
    for value in (READINGS, data("readings/a", 2, [Reading("ab", 3)])):
        if first.next_offset:
            stored = codec.decode(first.snapshot(), application="meters", partition=first.id)
            stored.ClearField("accounts")
            first = stages(meters())[0]
            first.restore(codec.encode(stored))
        for record in first.fold(first.next_offset, value):
            if record.topic == "meters.stage.places":
                second.fold(second.next_offset, record.value)
    assert first.accounts.now().since == 1
    found = of_both(first, second)
    assert not differences(found)
    assert {each.name: each.counts.taken for each in found}["readings"] == 1
    assert all(each.pending is None for each in found)


def keyed(*, has_filter: bool) -> Plan:
    app = Application("meters")
    orders = app.source("orders", schema=Order, key="customer")
    stream = orders.filter(is_positive, name="positive") if has_filter else orders
    stream.key_by("value", name="by_value").map(doubled, name="double").sink("out")
    return plan(app)


def test_accounts_of_another_application_begin_anew_but_for_what_has_passed_between_stages() -> None:
    first, second = stages(keyed(has_filter=False))
    log = [data("orders/a", number, orders_of([4, -1, 7])) for number in (1, 2)]
    sent = [[record.value for record in first.fold(0, log[0])]]
    changed = stages(keyed(has_filter=True))[0]
    changed.restore(first.snapshot())
    sent.append([record.value for record in changed.fold(1, log[1])])
    for offset, value in enumerate([*sent[0], *sent[1]]):
        second.fold(offset, value)
    found = of_both(changed, second)
    assert not differences(found)
    counts = {(each.kind, each.name): each.counts for each in found}
    assert (counts[AccountKind.ONE, "positive"].taken, counts[AccountKind.OUTPUT, "by_value"].before) == (
        3,
        3,
    )
    assert counts[AccountKind.INPUT, "by_value"].taken == 5
    again = stages(keyed(has_filter=True))[0]
    again.restore(changed.snapshot())
    assert again.accounts.now() == changed.accounts.now()


def test_what_never_became_rows_is_a_dead_letter_of_its_input() -> None:
    first, _ = stages(meters())
    first.exclusions = {
        1: Exclusion(1, (Excluded(0, 2, "tally", "killed"),), is_logged=True),
        2: Exclusion(2, record="killed", is_logged=True),
    }
    log = [
        b"no frame",
        READINGS,
        data("readings/a", 2, [Reading("ab", 3)] * 4),
        data("readings/a", 3, orders_of([1, 2])),
        data("unknown/a", 1, [Reading("ab", 3)]),
        data("readings/a", 4, [Reading("ab", -1)]),
    ]
    for offset, value in enumerate(log):
        first.fold(offset, value)
    found = balance({first.id: first.accounts.now()}, is_at_rest=True)
    assert not differences(found)
    counts = {each.name: each.counts for each in found}
    assert (counts["readings"].taken, counts["readings"].dead_letters, counts["readings"].given) == (10, 8, 2)
    assert (counts["?"].taken, counts["?"].dead_letters) == (2, 2)
    assert (counts["tally"].taken, counts["tally"].dead_letters) == (2, 1)


def test_they_pass_as_text() -> None:
    session = AppSession(ready("python"))
    session.step(("orders", orders_of(VALUES)))
    (partition,) = session._processor.partitions.values()
    now = partition.worker.accounts.now()
    assert partition.worker.accounts.text(1) == now.text()
    assert PartitionAccounts.of_text(now.text()) == now
    garbage = ("", "{}", "1", "[0,[1]]", '[0,["input","a",[],"",[1,"x"]]]', "[1e999]", "[" * 100_000)
    for text in garbage:
        with pytest.raises(ValueError, match="accounts"):
            PartitionAccounts.of_text(text)


def test_a_partition_that_stops_has_taken_nothing_of_the_record() -> None:
    app = Application("meters")
    app.source("orders", schema=Order, key="customer").filter(
        is_positive, on_error="stop", name="positive"
    ).sink("out")
    (stage,) = plan(app).stages
    one = worker(program(stage, compiled=False))
    one.fold(0, data("orders/a", 1, orders_of([1, 2])))
    saved = one.snapshot()
    with pytest.raises(PoisonError):
        one.fold(1, data("orders/a", 2, orders_of([3, 13])))
    app = Application("meters")
    app.source("orders", schema=Order, key="customer").filter(is_positive, name="positive").sink("out")
    mended = worker(program(plan(app).stages[0], compiled=False))
    mended.restore(saved)
    mended.fold(1, data("orders/a", 2, orders_of([3, 13])))
    (positive,) = [each for each in mended.accounts.now().rows if each.name == "positive"]
    assert (positive.counts.taken, positive.counts.given, positive.counts.dead_letters) == (4, 3, 1)


# What live records of partitions hold, and `bettong status --accounts` shows.


def records_of(*workers: PartitionWorker, **more: str) -> dict[PartitionId, dict[str, str]]:
    return {
        each.id: {"offset": str(each.next_offset), "accounts": each.accounts.text(each.next_offset)} | more
        for each in workers
    }


def rows_of(records: Mapping[PartitionId, Mapping[str, str]], *, behind: int = 0) -> list[PartitionRow]:
    ends = {id_: int(record["offset"]) + behind for id_, record in records.items()}
    return partition_rows({"p": {"service": "processor"}}, records, ends=ends)


def test_they_are_shown_in_80_columns_and_what_is_missing_in_words() -> None:
    first, second = stages(meters())
    first.fold(0, READINGS)
    records = records_of(first, second)
    moving = [replace(row, lag=0) for row in rows_of(records, behind=1)]  # as of the last report
    calm = account_lines(records, moving, are_ends_known=True)
    assert not differences_shown(calm)
    lost = account_lines(records, rows_of(records), are_ends_known=True)
    shown = shown_in(80, accounts_table(lost))
    assert max(map(len, shown)) <= 80
    assert [line.split() for line in shown if "places" in line] == [
        ["<", "places", "3", "3", "3"],
        ["places"],
        [">", "places", "0", "0", "0", "3"],
    ]
    assert not differences_shown(account_lines(records, rows_of(records), are_ends_known=False))
    (text,) = differences_shown(lost)
    assert "[red]the accounts do not add up[/red]: places, 3 messages sent to places were not" in text


def test_nothing_is_said_of_what_lies_between_stages_where_a_partition_has_not_reported() -> None:
    first, second = stages(meters())
    first.fold(0, READINGS)
    records = records_of(first, second)
    silent = records | {second.id: {"offset": "1"}}
    assert all(line.pending is None for line in account_lines(silent, rows_of(silent), are_ends_known=True))
    # One whose log is empty has nothing to report.
    empty = {first.id: records[first.id]}
    rows = [*rows_of(empty), replace(rows_of(empty)[0], partition=7, offset=0)]
    assert len(account_lines(empty, rows, are_ends_known=True)) == len(first.accounts.now().rows)


def test_what_another_version_wrote_is_as_if_nothing_was_said() -> None:
    first, second = stages(meters())
    first.fold(0, READINGS)
    records = records_of(first, second)
    records[second.id]["accounts"] = f'[0,["input","places",[],"",{[1] * 20}]]'
    found = account_lines(records, rows_of(records), are_ends_known=True)
    assert {line.stage for line in found} == {"readings"}
    assert not differences_shown(found)


def shown_in(columns: int, table: Table) -> list[str]:
    console = Console(width=columns, file=StringIO())
    console.print(table)
    assert isinstance(console.file, StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]
