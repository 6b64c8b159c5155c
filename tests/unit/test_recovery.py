"""Which state a partition goes on from: the one that needs least replay, and of those the nearest."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.snapshots.recovery import Candidate, Place, candidates, reaches

OFFSETS = st.lists(st.integers(0, 20), max_size=3)


@pytest.mark.parametrize(
    ("memory", "local", "store", "expected"),
    [
        (None, [], [], [("nowhere", 0)]),
        (10, [], [], [("memory", 10), ("nowhere", 0)]),
        (10, [10], [10], [("memory", 10), ("local", 10), ("store", 10), ("nowhere", 0)]),
        (7, [9], [8], [("local", 9), ("store", 8), ("memory", 7), ("nowhere", 0)]),
        (11, [12], [13], [("nowhere", 0)]),
        (11, [4, 12], [3, 6], [("store", 6), ("local", 4), ("store", 3), ("nowhere", 0)]),
        (0, [0], [0], [("memory", 0), ("local", 0), ("store", 0), ("nowhere", 0)]),
    ],
)
def test_candidates_for_offset_10_in_their_order(
    memory: int | None, local: list[int], store: list[int], expected: list[tuple[str, int]]
) -> None:
    found = candidates(10, memory=memory, local=local, store=store)
    assert [(each.place.value, each.offset) for each in found] == expected


@given(st.integers(0, 20), st.none() | st.integers(0, 20), OFFSETS, OFFSETS)
def test_no_candidate_lies_ahead_and_the_last_is_a_new_state(
    first: int, memory: int | None, local: list[int], store: list[int]
) -> None:
    found = candidates(first, memory=memory, local=local, store=store)
    assert all(each.offset <= first for each in found)
    assert [each.offset for each in found] == sorted((each.offset for each in found), reverse=True)
    assert found[-1] == Candidate(Place.NOWHERE, 0)
    known = [memory] * (memory is not None) + local + store
    assert len(found) == 1 + sum(offset <= first for offset in known if offset is not None)


@pytest.mark.parametrize(
    ("offset", "log_start", "reached"),
    [(10, 99, True), (5, 5, True), (5, 0, True), (5, 6, False), (0, 0, True), (0, 1, False)],
)
def test_a_candidate_serves_when_the_log_reaches_back_to_it(
    offset: int, log_start: int, *, reached: bool
) -> None:
    assert reaches(Candidate(Place.STORE, offset), first=10, log_start=log_start) is reached
