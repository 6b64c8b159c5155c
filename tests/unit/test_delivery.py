"""The delivery rule by itself. What it makes of everything that numbers frames: tests/unit/test_delivery_world.py."""

from __future__ import annotations

import copy
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong import delivery
from bettong.delivery import (
    AGE_STEP_NS,
    BEHIND_MAX,
    ENDED_TTL_NS,
    GAPS_MAX,
    ORIGIN_TTL_NS,
    REMEMBERED_RECORDS,
    DeliveryTable,
    Verdict,
    judge,
)
from bettong.identifiers import Origin, SequenceNumber


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
    assert (
        judge(SequenceNumber(highest), sequence=SequenceNumber(sequence), previous=SequenceNumber(previous))
        is verdict
    )


def test_a_duplicate_and_a_gap_leave_the_table_as_it_was() -> None:
    table = DeliveryTable.of({Origin("orders/a"): SequenceNumber(5)})
    assert (
        table.take(Origin("orders/a"), sequence=SequenceNumber(5), previous=SequenceNumber(4), now_ns=1)
        is Verdict.DUPLICATE
    )
    assert (
        table.take(Origin("orders/a"), sequence=SequenceNumber(9), previous=SequenceNumber(8), now_ns=2)
        is Verdict.GAP
    )
    assert table.highest == {"orders/a": 5}


def test_a_gap_of_an_unknown_origin_does_not_enter_the_table() -> None:
    table = DeliveryTable()
    assert (
        table.take(Origin("orders/a"), sequence=SequenceNumber(9), previous=SequenceNumber(8), now_ns=1)
        is Verdict.GAP
    )
    assert table.highest == {}
    assert table.heard_ns == {}


def test_an_open_never_lowers_what_was_seen() -> None:
    table = DeliveryTable.of({Origin("orders/a"): SequenceNumber(5)})
    table.open(Origin("orders/a"), acknowledged=SequenceNumber(3), now_ns=1)
    assert table.highest == {"orders/a": 5}
    table.open(Origin("orders/a"), acknowledged=SequenceNumber(8), now_ns=2)
    assert table.highest == {"orders/a": 8}


HOUR_NS = 3600 * 10**9
START_NS = 10**18


def others(table: DeliveryTable, records: int, *, step_ns: int = AGE_STEP_NS) -> None:
    """So many records of another client, as far apart by its clock."""
    for _ in range(records):
        table.open(Origin("orders/other"), acknowledged=SequenceNumber(0), now_ns=table.clock_ns + step_ns)


def met(origin: str = "orders/a", *, sequence: int = 7) -> DeliveryTable:
    table = DeliveryTable()
    assert (
        table.take(
            Origin(origin), sequence=SequenceNumber(sequence), previous=SequenceNumber(0), now_ns=START_NS
        )
        is Verdict.TAKE
    )
    return table


def test_a_silent_origin_is_forgotten_after_its_time_to_live_and_not_before() -> None:
    table = met()
    others(table, REMEMBERED_RECORDS)
    assert table.highest[Origin("orders/a")] == 7
    others(table, REMEMBERED_RECORDS // 10)
    assert set(table.highest) == set(table.heard_ns) == {"orders/other"}


@pytest.mark.parametrize("hours", [30, 24 * 365 * 100])
def test_a_clock_that_is_set_forward_forgets_nobody(hours: int) -> None:
    table = met()
    others(table, 1, step_ns=hours * HOUR_NS)
    for _ in range(5 * BEHIND_MAX):
        table.open(Origin("orders/b"), acknowledged=SequenceNumber(0), now_ns=START_NS)
    assert (
        table.take(
            Origin("orders/a"), sequence=SequenceNumber(8), previous=SequenceNumber(7), now_ns=START_NS + 1
        )
        is Verdict.TAKE
    )
    assert table.age_ns <= 3 * AGE_STEP_NS


def test_a_table_ages_on_after_a_clock_that_was_wrong_by_years() -> None:
    table = met()
    table.open(
        Origin("orders/wrong"), acknowledged=SequenceNumber(0), now_ns=START_NS + 100 * 365 * 24 * HOUR_NS
    )
    for second in range(REMEMBERED_RECORDS + BEHIND_MAX + REMEMBERED_RECORDS // 10):
        table.open(Origin("orders/other"), acknowledged=SequenceNumber(0), now_ns=START_NS + second * 10**9)
    assert set(table.highest) == {"orders/other"}


def test_two_clocks_that_are_days_apart_age_a_table_as_one_does() -> None:
    table = met()
    for step in range(20_000):
        now_ns = START_NS + step * 10**6
        table.open(Origin("orders/b"), acknowledged=SequenceNumber(0), now_ns=now_ns + 30 * HOUR_NS)
        table.open(Origin("orders/c"), acknowledged=SequenceNumber(0), now_ns=now_ns)
    assert table.age_ns <= 20_000 * 10**6 + 3 * AGE_STEP_NS


def test_a_clock_that_runs_away_forgets_nobody_within_the_records_that_are_promised() -> None:
    table = met()
    others(table, REMEMBERED_RECORDS - 1, step_ns=HOUR_NS)
    assert (
        table.take(
            Origin("orders/a"), sequence=SequenceNumber(8), previous=SequenceNumber(7), now_ns=START_NS
        )
        is Verdict.TAKE
    )


def test_a_duplicate_keeps_its_origin_alive() -> None:
    table = met(sequence=1)
    for _ in range(3):
        others(table, REMEMBERED_RECORDS * 3 // 4)
        assert (
            table.take(Origin("orders/a"), sequence=SequenceNumber(1), previous=SequenceNumber(0), now_ns=0)
            is Verdict.DUPLICATE
        )


def test_the_table_is_bounded_by_the_origins_of_one_time_to_live() -> None:
    table = DeliveryTable()
    largest = 0
    for number in range(3 * REMEMBERED_RECORDS):
        table.take(
            Origin(f"orders/{number}"),
            sequence=SequenceNumber(1),
            previous=SequenceNumber(0),
            now_ns=START_NS + number * HOUR_NS,
        )
        largest = max(largest, len(table.highest))
    assert REMEMBERED_RECORDS <= largest <= REMEMBERED_RECORDS * 17 // 16 + 1


def test_a_forgotten_origin_goes_on_when_it_opens_again() -> None:
    """Without its OPEN what it sends is a gap: who numbers frames must open again when it may be forgotten."""
    table = met()
    others(table, 2 * REMEMBERED_RECORDS)
    assert (
        table.take(
            Origin("orders/a"), sequence=SequenceNumber(8), previous=SequenceNumber(7), now_ns=START_NS
        )
        is Verdict.GAP
    )
    table.open(Origin("orders/a"), acknowledged=SequenceNumber(7), now_ns=START_NS)
    assert (
        table.take(
            Origin("orders/a"), sequence=SequenceNumber(8), previous=SequenceNumber(7), now_ns=START_NS
        )
        is Verdict.TAKE
    )


def test_a_stage_is_never_forgotten() -> None:
    table = met("places/readings/0")
    others(table, 3 * REMEMBERED_RECORDS)
    assert table.highest[Origin("places/readings/0")] == 7


def test_a_table_from_a_position_counts_its_origins_as_just_heard() -> None:
    table = DeliveryTable.of({Origin("orders/a"): SequenceNumber(5), Origin("orders/b"): SequenceNumber(9)})
    table.take(Origin("orders/a"), sequence=SequenceNumber(6), previous=SequenceNumber(5), now_ns=START_NS)
    others(table, REMEMBERED_RECORDS - 1)
    assert table.highest == {"orders/a": 6, "orders/b": 9, "orders/other": 0}
    others(table, REMEMBERED_RECORDS)
    assert set(table.highest) == {"orders/other"}


ENDED_RECORDS = ENDED_TTL_NS // AGE_STEP_NS


def test_an_origin_that_has_ended_is_soon_forgotten_and_what_is_late_is_known_until_then() -> None:
    table = met()
    table.end(Origin("orders/a"), acknowledged=SequenceNumber(9), now_ns=START_NS)
    others(table, ENDED_RECORDS - 1)
    assert (
        table.take(
            Origin("orders/a"), sequence=SequenceNumber(9), previous=SequenceNumber(8), now_ns=START_NS
        )
        is Verdict.DUPLICATE
    )
    others(table, ENDED_RECORDS // 8)
    assert set(table.highest) == {"orders/other"}
    assert not table.ended_ns


@pytest.mark.parametrize("opens", [True, False])
def test_an_origin_that_ended_and_goes_on_all_the_same_lives_as_any_other(*, opens: bool) -> None:
    table = met()
    table.end(Origin("orders/a"), acknowledged=SequenceNumber(7), now_ns=START_NS)
    if opens:
        table.open(Origin("orders/a"), acknowledged=SequenceNumber(7), now_ns=START_NS)
    else:
        table.take(
            Origin("orders/a"), sequence=SequenceNumber(8), previous=SequenceNumber(7), now_ns=START_NS
        )
    others(table, REMEMBERED_RECORDS - 1)
    assert "orders/a" in table.highest


def test_a_late_end_does_not_end_a_session_that_goes_on() -> None:
    table = met()
    table.end(Origin("orders/a"), acknowledged=SequenceNumber(6), now_ns=START_NS)
    assert not table.ended_ns
    table.end(Origin("orders/unknown"), acknowledged=SequenceNumber(6), now_ns=START_NS)
    assert set(table.highest) == {"orders/a"}


def test_two_hundred_thousand_streams_that_come_and_go_do_not_stay() -> None:
    """In 50 minutes of the log's time: the table holds the streams of ten minutes, not of a day."""
    table, largest, began_s = DeliveryTable(), 0, time.thread_time()
    for number in range(200_000):
        origin, now_ns = f"orders/{number}", START_NS + number * 15_000_000
        table.open(Origin(origin), acknowledged=SequenceNumber(0), now_ns=now_ns)
        assert (
            table.take(Origin(origin), sequence=SequenceNumber(1), previous=SequenceNumber(0), now_ns=now_ns)
            is Verdict.TAKE
        )
        table.end(Origin(origin), acknowledged=SequenceNumber(1), now_ns=now_ns)
        largest = max(largest, len(table.highest))
    took_s = time.thread_time() - began_s
    assert largest <= ENDED_TTL_NS // 15_000_000 * 17 // 16 + 1
    assert took_s < 10, f"{took_s:.1f} s"  # of CPU; it takes 0.6 s


def missed(table: DeliveryTable, sequence: int) -> None:
    verdict = table.take(
        Origin("orders/a"),
        sequence=SequenceNumber(sequence),
        previous=SequenceNumber(sequence - 1),
        now_ns=table.clock_ns,
    )
    assert verdict is Verdict.GAP


@pytest.mark.parametrize("filled_by", ["frame", "open", "end"])
def test_the_oldest_gap_of_an_origin_is_noted_until_it_is_filled(filled_by: str) -> None:
    table = met(sequence=7)
    missed(table, 9)
    missed(table, 10)
    gap = table.gap
    assert gap is not None
    assert (gap.origin, gap.sequence, gap.previous) == ("orders/a", 9, 8)
    if filled_by == "frame":
        table.take(
            Origin("orders/a"), sequence=SequenceNumber(8), previous=SequenceNumber(7), now_ns=START_NS
        )
    elif filled_by == "open":
        table.open(Origin("orders/a"), acknowledged=SequenceNumber(8), now_ns=START_NS)
    else:
        table.end(Origin("orders/a"), acknowledged=SequenceNumber(8), now_ns=START_NS)
    assert table.gap is None


def test_a_gap_that_nobody_sends_behind_is_dropped_and_gaps_are_bounded() -> None:
    table = met(sequence=7)
    missed(table, 9)
    others(table, ENDED_RECORDS - 1)
    missed(table, 10)
    others(table, ENDED_RECORDS - 1)
    assert table.gaps, "its client still sends"
    others(table, ENDED_RECORDS // 8)
    assert not table.gaps
    for number in range(2 * GAPS_MAX):
        table.take(
            Origin(f"orders/{number}"),
            sequence=SequenceNumber(9),
            previous=SequenceNumber(8),
            now_ns=table.clock_ns,
        )
    assert len(table.gaps) == GAPS_MAX


heard = st.tuples(
    st.sampled_from("abcd"),
    st.sampled_from(["take", "open", "end", "kept"]),
    st.integers(-(10**13), 3 * 10**13),
)


@given(st.lists(heard, max_size=80), st.data())
def test_a_replay_from_any_saved_point_forgets_alike(
    records: list[tuple[str, str, int]], data: st.DataObject
) -> None:
    def fold(table: DeliveryTable, start: int, stop: int) -> DeliveryTable:
        for index in range(start, stop):
            origin, what, _ = records[index]
            now_ns = START_NS + sum(step for _, _, step in records[: index + 1])
            if what == "take":
                table.take(
                    Origin(f"orders/{origin}"),
                    sequence=SequenceNumber(index + 1),
                    previous=SequenceNumber(0),
                    now_ns=now_ns,
                )
            elif what == "open":
                table.open(Origin(f"orders/{origin}"), acknowledged=SequenceNumber(index), now_ns=now_ns)
            else:
                ended = Origin(f"orders/{origin}")
                table.end(ended, acknowledged=SequenceNumber(index), now_ns=now_ns, kept=what == "kept")
        return table

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delivery, "AGE_STEP_NS", ORIGIN_TTL_NS // 20)
        patch.setattr(delivery, "BEHIND_MAX", 3)
        saved = data.draw(st.integers(0, len(records)))
        through = fold(DeliveryTable(), 0, len(records))
        restored = copy.deepcopy(fold(DeliveryTable(), 0, saved))
        assert fold(restored, saved, len(records)) == through
    assert set(through.highest) == {*through.heard_ns, *through.ended_ns}
    assert not set(through.heard_ns) & set(through.ended_ns)


def test_an_end_that_comes_again_when_the_origin_is_forgotten_is_forgotten_in_its_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(delivery, "AGE_STEP_NS", 2 * ENDED_TTL_NS)
    table, origin = DeliveryTable(), Origin("orders/a")
    table.take(origin, sequence=SequenceNumber(1), previous=SequenceNumber(0), now_ns=START_NS)
    for round_ in range(2):
        table.end(origin, acknowledged=SequenceNumber(1), now_ns=START_NS + round_ * (ENDED_TTL_NS + 1))
        assert (set(table.highest), set(table.ended_ns)) == ({origin}, {origin})
    table.open(Origin("orders/b"), acknowledged=SequenceNumber(0), now_ns=START_NS + 3 * ENDED_TTL_NS)
    assert set(table.highest) == {"orders/b"}


def test_an_end_whose_frames_may_come_again_is_known_as_long_as_a_client_that_is_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(delivery, "AGE_STEP_NS", ORIGIN_TTL_NS)
    origin, kept, silent = Origin("orders/a"), Origin("orders/kept"), Origin("orders/silent")

    def known_after(age_ns: int) -> set[Origin]:
        table = DeliveryTable()
        for each in (origin, kept, silent):
            table.take(each, sequence=SequenceNumber(1), previous=SequenceNumber(0), now_ns=START_NS)
        table.end(origin, acknowledged=SequenceNumber(1), now_ns=START_NS)
        table.end(kept, acknowledged=SequenceNumber(1), now_ns=START_NS, kept=True)
        assert set(table.ended_ns) == {origin, kept}
        table.open(Origin("orders/b"), acknowledged=SequenceNumber(0), now_ns=START_NS + age_ns)
        again = table.take(kept, sequence=SequenceNumber(1), previous=SequenceNumber(0), now_ns=START_NS)
        assert (again is Verdict.DUPLICATE) == (kept in table.highest)
        return set(table.highest) - {Origin("orders/b")}

    assert known_after(ENDED_TTL_NS // 2) == {origin, kept, silent}
    assert known_after(2 * ENDED_TTL_NS) == {kept, silent}
    assert known_after(ORIGIN_TTL_NS - ENDED_TTL_NS) == {kept, silent}
