"""The delivery rule by itself. What it makes of everything that numbers frames: tests/unit/test_delivery_world.py."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.delivery import ORIGIN_TTL_NS, DeliveryTable, Verdict, judge


@pytest.mark.parametrize(
    ("highest", "sequence", "previous", "verdict"),
    [
        (0, 1, 0, Verdict.TAKE),
        (5, 9, 5, Verdict.TAKE),
        (5, 9, 3, Verdict.TAKE),
        (5, 5, 3, Verdict.DUPLICATE),
        (5, 4, 3, Verdict.DUPLICATE),
        (5, 9, 7, Verdict.GAP),
        (0, 2, 1, Verdict.GAP),
    ],
)
def test_a_frame_is_taken_when_previous_is_seen_and_sequence_is_not(
    highest: int, sequence: int, previous: int, verdict: Verdict
) -> None:
    assert judge(highest, sequence=sequence, previous=previous) is verdict


def test_a_duplicate_and_a_gap_leave_the_table_as_it_was() -> None:
    table = DeliveryTable.of({"orders/a": 5})
    assert table.take("orders/a", sequence=5, previous=4, now_ns=1) is Verdict.DUPLICATE
    assert table.take("orders/a", sequence=9, previous=8, now_ns=2) is Verdict.GAP
    assert table.highest == {"orders/a": 5}


def test_a_gap_of_an_unknown_origin_does_not_enter_the_table() -> None:
    table = DeliveryTable()
    assert table.take("orders/a", sequence=9, previous=8, now_ns=1) is Verdict.GAP
    assert table.highest == {}
    assert table.heard_ns == {}


def test_an_open_never_lowers_what_was_seen() -> None:
    table = DeliveryTable.of({"orders/a": 5})
    table.open("orders/a", acknowledged=3, now_ns=1)
    assert table.highest == {"orders/a": 5}
    table.open("orders/a", acknowledged=8, now_ns=2)
    assert table.highest == {"orders/a": 8}


def test_a_silent_origin_is_forgotten_after_its_time_to_live() -> None:
    table = DeliveryTable(ttl_ns=1600)
    table.take("orders/silent", sequence=1, previous=0, now_ns=1000)
    for now_ns in range(1100, 2600, 100):
        table.take("orders/live", sequence=now_ns, previous=0, now_ns=now_ns)
        assert "orders/silent" in table.highest, now_ns
    for now_ns in range(2600, 2900, 100):
        table.take("orders/live", sequence=now_ns, previous=0, now_ns=now_ns)
    assert set(table.highest) == set(table.heard_ns) == {"orders/live"}


def test_a_duplicate_keeps_its_origin_alive() -> None:
    table = DeliveryTable(ttl_ns=1600)
    for now_ns in range(1000, 9000, 500):
        table.take("orders/a", sequence=1, previous=0, now_ns=now_ns)
        table.take("orders/live", sequence=now_ns, previous=0, now_ns=now_ns)
    assert table.highest["orders/a"] == 1


def test_the_table_is_bounded_by_the_origins_of_one_time_to_live() -> None:
    table = DeliveryTable(ttl_ns=1600)
    largest = 0
    for now_ns in range(1000, 50_000, 10):
        table.take(f"orders/{now_ns}", sequence=1, previous=0, now_ns=now_ns)
        largest = max(largest, len(table.highest))
    assert largest <= 1600 // 10 + 2 * 100 // 10


def test_a_forgotten_origin_goes_on_when_it_opens_again() -> None:
    """Without its OPEN what it sends is a gap: who numbers frames must open again after a long silence."""
    table = DeliveryTable(ttl_ns=1600)
    table.take("orders/a", sequence=7, previous=0, now_ns=1000)
    for now_ns in range(1100, 9000, 100):
        table.take("orders/live", sequence=now_ns, previous=0, now_ns=now_ns)
    assert table.take("orders/a", sequence=8, previous=7, now_ns=9000) is Verdict.GAP
    table.open("orders/a", acknowledged=7, now_ns=9000)
    assert table.take("orders/a", sequence=8, previous=7, now_ns=9000) is Verdict.TAKE


def test_a_table_from_a_position_counts_its_origins_as_just_heard() -> None:
    table = DeliveryTable.of({"orders/a": 5, "orders/b": 9})
    start_ns = 50 * ORIGIN_TTL_NS
    table.take("orders/a", sequence=6, previous=5, now_ns=start_ns)
    table.take("orders/a", sequence=7, previous=6, now_ns=start_ns + ORIGIN_TTL_NS)
    assert table.highest == {"orders/a": 7, "orders/b": 9}
    table.take("orders/a", sequence=8, previous=7, now_ns=start_ns + 2 * ORIGIN_TTL_NS)
    assert table.highest == {"orders/a": 8}


heard = st.tuples(st.sampled_from("abcd"), st.booleans(), st.integers(1, 400))


@given(st.lists(heard, max_size=80), st.data())
def test_a_replay_from_any_saved_point_forgets_alike(
    records: list[tuple[str, bool, int]], data: st.DataObject
) -> None:
    def fold(table: DeliveryTable, start: int, stop: int) -> DeliveryTable:
        for place in range(start, stop):
            origin, opens, _ = records[place]
            now_ns = 1000 + sum(step for _, _, step in records[: place + 1])
            if opens:
                table.open(f"orders/{origin}", acknowledged=place, now_ns=now_ns)
            else:
                table.take(f"orders/{origin}", sequence=place + 1, previous=0, now_ns=now_ns)
        return table

    saved = data.draw(st.integers(0, len(records)))
    through = fold(DeliveryTable(ttl_ns=1600), 0, len(records))
    restored = copy.deepcopy(fold(DeliveryTable(ttl_ns=1600), 0, saved))
    assert fold(restored, saved, len(records)) == through
    assert set(through.highest) == set(through.heard_ns)
