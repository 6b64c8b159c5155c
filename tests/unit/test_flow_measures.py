"""What flows where, what became of it, and back-pressure: from what services count."""

from __future__ import annotations

import pytest

from bettong.inspection.flow_measures import held_share
from bettong.inspection.measures import Measures
from bettong.worker.balance import AccountKind, AccountRow, PartitionAccounts, RowCounts
from bettong_sender.buffer import Buffer
from tests.samples.deployments import Partitions, measured, moment, partition, services


def accounts(taken: int, *, late: int = 0, dead: int = 0) -> str:
    given = taken - late - dead
    return PartitionAccounts(
        0,
        (
            AccountRow(AccountKind.INPUT, "in", (), "", RowCounts(taken, taken)),
            AccountRow(
                AccountKind.ANY, "sum", ("in",), "", RowCounts(taken, given, late=late, dead_letters=dead)
            ),
        ),
    ).text()


def two(*held_s: float, taken: int = 0, **counts: int) -> Partitions:
    found: Partitions = {}
    for number, each in enumerate(held_s):
        found |= partition("s", number, offset=5, held_s=each, accounts=accounts(taken, **counts))
    return found


def after(before: Partitions, now: Partitions, **changed: dict[str, object]) -> Measures:
    live = services(receiver={"lag": 0}, **changed)
    return measured(moment(0, live, before), moment(4, live, now))


def test_a_place_has_the_rates_of_the_last_seconds_and_the_counts_of_its_account() -> None:
    found = after(two(0, 0, taken=100), two(0, 0, taken=300, late=3, dead=5)).flows
    assert [(each.kind, each.name) for each in found] == [("input", "in"), ("computation", "sum")]
    own = found[1]
    assert own.given_per_s == pytest.approx((584 - 200) / 4)
    assert own.taken_per_s == 100.0
    assert (own.late, own.partly_late, own.dead_letters, own.skipped) == (6, 0, 10, 0)


def test_a_place_that_nobody_has_seen_before_or_that_begins_anew_has_no_rate() -> None:
    live = services(receiver={"lag": 0})
    assert measured(moment(0, live, two(0, taken=9))).flows[1].taken_per_s is None
    assert after(two(0, taken=100), two(0, taken=9)).flows[1].taken_per_s is None


def test_back_pressure_of_a_stage_is_that_of_the_slot_that_waited_most() -> None:
    live = services(receiver={"lag": 0})
    slots = dict(zip(two(0, 0, 0), (0, 0, 1), strict=True))
    before, now = (
        moment(time_s, live, rows, slots=slots) for time_s, rows in ((0, two(1, 1, 1)), (4, two(2, 2, 4)))
    )
    (stage,) = measured(before, now).stages
    assert stage.held_share == 0.75
    (stage,) = measured(before, moment(4, live, two(2.5, 2.5, 2), slots=slots)).stages
    assert stage.held_share == 0.75
    again = moment(4, live, two(0, 0, 0), slots=slots)
    assert measured(before, again).stages[0].held_share is None
    assert held_share(now.found.partitions, before.found.partitions, 0.0) is None


@pytest.mark.parametrize(
    ("old", "new", "expected"), [(1, 3, 0.5), (1, 99, 1.0), (3, 1, None), ("", 1, None), (1, "x", None)]
)
def test_back_pressure_of_senders_is_the_time_in_which_they_had_no_room(
    old: object, new: object, expected: float | None
) -> None:
    before = moment(0, services(sender={"held_s": old}), two(0))
    now = moment(4, services(sender={"held_s": new}), two(0))
    assert measured(before, now).senders_held_share == expected


def test_a_buffer_counts_for_how_long_it_was_full() -> None:
    now_s = [10.0]
    buffer = Buffer(800, clock_s=lambda: now_s[0])
    buffer.add(800)
    now_s[0] = 12.0
    assert buffer.full.total_s == 2.0
    buffer.add(100)
    now_s[0] = 13.0
    buffer.remove(300)
    now_s[0] = 20.0
    assert (buffer.full.total_s, buffer.is_full) == (3.0, False)
    buffer.add(300)
    now_s[0] = 20.5
    assert (buffer.full.total_s, buffer.is_full) == (3.5, True)
