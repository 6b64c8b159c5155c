"""Building blocks of loads: skewed keys, disorder within a bound, shares; the same for the same seed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.lab.generators import disordered, shares, skewed, weighed


def chance(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("skew", [0.0, 0.5, 1.1, 3.0])
def test_keys_come_as_often_as_zipfs_law_says(skew: float) -> None:
    count, keys = 200_000, 50
    found = np.bincount(skewed(count, keys=keys, skew=skew, drawn=chance()), minlength=keys)
    weights = 1.0 / np.arange(1, keys + 1) ** skew
    expected = weights / weights.sum() * count
    assert len(found) == keys
    assert np.all(np.abs(found - expected) < 6 * np.sqrt(expected) + 1)


def test_the_same_seed_gives_the_same_keys() -> None:
    def drawn(seed: int) -> list[int]:
        return [int(key) for key in skewed(100, keys=1_000, skew=1.0, drawn=chance(seed))]

    assert drawn(1) == drawn(1) != drawn(2)


def test_what_weighs_nothing_beside_others_does_not_come() -> None:
    assert set(weighed(1_000, [1e-30, 1.0, 1e-30], drawn=chance()).tolist()) == {1}


@given(
    st.lists(st.integers(0, 10**6), min_size=1, max_size=300), st.integers(0, 10**5), st.integers(0, 2**32)
)
def test_disorder_leaves_no_message_out_and_none_later_than_the_bound(
    steps: list[int], within_ns: int, seed: int
) -> None:
    times = np.cumsum(steps)
    order = disordered(times, within_ns=within_ns, drawn=chance(seed))
    assert sorted(order.tolist()) == list(range(len(steps)))
    found = times[order]
    assert np.all(np.maximum.accumulate(found) - found <= within_ns)


def test_there_is_disorder_where_it_is_asked_for() -> None:
    times = np.arange(1_000) * 1_000_000
    assert not np.array_equal(disordered(times, within_ns=5_000_000, drawn=chance()), np.arange(1_000))
    assert np.array_equal(disordered(times, within_ns=0, drawn=chance()), np.arange(1_000))


@given(
    st.integers(0, 5_000_000),
    st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=20),
)
def test_shares_are_all_messages_each_in_proportion(messages: int, weights: list[float]) -> None:
    found = shares(messages, weights)
    assert sum(found) == messages
    for count, weight in zip(found, weights, strict=True):
        assert abs(count - weight / sum(weights) * messages) <= 1.01
