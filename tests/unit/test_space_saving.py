"""What Space-Saving promises, for any stream, by a count of all."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.worker.space_saving import SpaceSaving

# Few keys, so that they come again; now and then a heavy one.
STREAMS = st.lists(st.tuples(st.integers(0, 12), st.one_of(st.just(1), st.integers(1, 50))), max_size=200)


def counted(stream: list[tuple[int, int]], capacity: int) -> tuple[SpaceSaving[int], Counter[int]]:
    """A sketch of the stream, and the weight of each key."""
    sketch, weights = SpaceSaving[int](capacity), Counter[int]()
    for key, weight in stream:
        sketch.add(key, weight)
        weights[key] += weight
    return sketch, weights


@given(STREAMS, st.integers(1, 8))
def test_every_key_of_more_than_its_part_is_there_and_no_count_is_off_by_more(
    stream: list[tuple[int, int]], capacity: int
) -> None:
    sketch, weights = counted(stream, capacity)
    total = weights.total()
    found = {each.key: each for each in sketch.heaviest(capacity)}
    assert len(found) <= capacity
    assert sketch.total == total
    assert {key for key, weight in weights.items() if weight * capacity > total} <= found.keys()
    for key, each in found.items():
        assert each.weight - each.error <= weights[key] <= each.weight
        assert 0 <= each.error * capacity <= total
    assert sum(each.weight for each in found.values()) == total, "all counts together"


@given(STREAMS, st.integers(13, 20))
def test_with_room_for_all_keys_every_count_is_exact(stream: list[tuple[int, int]], capacity: int) -> None:
    sketch, weights = counted(stream, capacity)
    found = sketch.heaviest(capacity)
    assert {each.key: each.weight for each in found} == dict(weights)
    assert all(each.error == 0 for each in found)
    assert [each.weight for each in found] == sorted(weights.values(), reverse=True)


def test_the_lightest_makes_room_with_its_count_as_the_error_of_the_new_one() -> None:
    sketch, _ = counted([(1, 5), (2, 1), (3, 2)], capacity=2)
    assert sketch.heaviest(9) == [(1, 5, 0), (3, 3, 1)]
    assert sketch.heaviest(1) == [(1, 5, 0)]


@pytest.mark.parametrize("capacity", [1, 50])
def test_it_stays_as_large_as_it_is_whatever_comes(capacity: int) -> None:
    sketch, _ = counted([(key, 1) for key in range(5000)], capacity)
    assert len(sketch.heaviest(10_000)) == capacity
    assert len(sketch._lightest) == len(sketch._errors) == capacity
