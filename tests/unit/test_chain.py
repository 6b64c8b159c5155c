"""Chains of increments: which make up a state, and which are no longer needed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.snapshots.chain import Increment, chain, superfluous

# The example of the module: offset, since, root.
SAVED = [
    Increment(*each)
    for each in (
        (100, 0, 100), (140, 100, 100), (180, 140, 100), (220, 180, 140), (260, 220, 140), (300, 260, 140)
    )
]  # fmt: skip


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (100, [100]),
        (140, [100, 140]),
        (180, [100, 140, 180]),
        (220, [140, 180, 220]),
        (300, [140, 180, 220, 260, 300]),
    ],
)
def test_a_chain_goes_from_the_root_to_the_state(last: int, expected: list[int]) -> None:
    (increment,) = [each for each in SAVED if each.offset == last]
    assert [each.offset for each in chain(SAVED, increment) or ()] == expected


@pytest.mark.parametrize("lost", SAVED[1:-1])
def test_a_chain_with_a_missing_increment_is_none(lost: Increment) -> None:
    assert chain([each for each in SAVED if each != lost], SAVED[-1]) is None


def test_increments_that_lead_in_a_circle_or_nowhere_are_no_chain() -> None:
    assert chain([Increment(5, 5, 3)], Increment(5, 5, 3)) is None
    assert chain([Increment(5, 7, 3), Increment(7, 5, 3)], Increment(7, 5, 3)) is None
    assert chain([], Increment(5, 4, 3)) is None


def test_what_lies_before_the_root_before_the_newest_is_superfluous() -> None:
    assert superfluous(SAVED) == []
    further = [*SAVED, Increment(340, 300, 260)]
    assert [each.offset for each in superfluous(further)] == [100]
    assert superfluous([]) == []


@pytest.mark.parametrize("name", ["", "1", "1-2", "1-2-3-4", "a-b-c", "-1-2-3", "1-2-3 ", "1" * 20 + "-1-1"])
def test_other_names_are_no_increments(name: str) -> None:
    assert Increment.parse(name) is None


@given(st.builds(Increment, *[st.integers(0, 2**62)] * 3))
def test_a_name_tells_all(increment: Increment) -> None:
    assert Increment.parse(increment.name) == increment
