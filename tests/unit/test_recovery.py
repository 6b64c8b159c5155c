"""From which state a partition resumes: the one that needs least replay, and of those the nearest."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.snapshots.chain import Increment
from bettong.snapshots.recovery import StateCandidate, StateLocation, candidates, reaches
from tests.samples.snapshots import whole


@pytest.mark.parametrize(
    ("memory", "saved", "expected"),
    [
        (None, [], [("nowhere", 0)]),
        (10, [], [("memory", 10), ("nowhere", 0)]),
        (10, [10], [("memory", 10), ("saved", 10), ("nowhere", 0)]),
        (7, [9, 8], [("saved", 9), ("saved", 8), ("memory", 7), ("nowhere", 0)]),
        (11, [12, 13], [("nowhere", 0)]),
        (0, [0], [("memory", 0), ("saved", 0), ("nowhere", 0)]),
    ],
)
def test_candidates_for_offset_10_in_their_order(
    memory: int | None, saved: list[int], expected: list[tuple[str, int]]
) -> None:
    found = candidates(10, memory=memory, saved=list(map(whole, saved)))
    assert [(each.location.value, each.offset) for each in found] == expected


def test_a_candidate_brings_the_increments_that_make_it_and_one_without_its_root_is_none() -> None:
    root, second, lost = Increment(4, 0, 4), Increment(6, 4, 4), Increment(9, 8, 4)
    found = candidates(10, memory=None, saved=[lost, second, root])
    assert found == (
        StateCandidate(StateLocation.SAVED, 6, (root, second)),
        StateCandidate(StateLocation.SAVED, 4, (root,)),
        StateCandidate(StateLocation.NOWHERE, 0),
    )


@given(st.integers(0, 20), st.none() | st.integers(0, 20), st.lists(st.integers(0, 20), max_size=6))
def test_no_candidate_lies_ahead_and_the_last_is_a_new_state(
    first: int, memory: int | None, saved: list[int]
) -> None:
    found = candidates(first, memory=memory, saved=list(map(whole, saved)))
    assert all(each.offset <= first for each in found)
    assert [each.offset for each in found] == sorted((each.offset for each in found), reverse=True)
    assert found[-1] == StateCandidate(StateLocation.NOWHERE, 0)
    known = [memory] * (memory is not None) + saved
    assert len(found) == 1 + sum(offset <= first for offset in known if offset is not None)


@pytest.mark.parametrize(
    ("offset", "log_start", "reached"),
    [(10, 99, True), (5, 5, True), (5, 0, True), (5, 6, False), (0, 0, True), (0, 1, False)],
)
def test_a_candidate_serves_when_the_log_reaches_back_to_it(
    offset: int, log_start: int, *, reached: bool
) -> None:
    assert reaches(StateCandidate(StateLocation.SAVED, offset), first=10, log_start=log_start) is reached
