"""`bettong lab find`: which rate is tried next."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bettong.lab.statistics.search import PROBES_MAX, Probe, next_rate, sustained


def search(capacity: float, first: float, precision: float) -> list[Probe]:
    """Against a system that sustains every rate up to its capacity."""
    probes: list[Probe] = []
    while (rate := next_rate(probes, first, precision)) is not None:
        probes.append(Probe(rate, "" if rate <= capacity else "too slow"))
    return probes


@given(st.floats(2, 1e8), st.floats(1, 1e6), st.floats(0.01, 0.5))
def test_what_is_found_is_the_capacity_within_the_precision(
    capacity: float, first: float, precision: float
) -> None:
    probes = search(capacity, first, precision)
    assert len(probes) < PROBES_MAX
    found = sustained(probes)
    assert found is not None
    assert found <= capacity < found * (1 + precision)


def test_a_system_that_sustains_nothing_is_given_up_on() -> None:
    probes = search(0.0, 1000.0, 0.1)
    assert sustained(probes) is None
    assert probes[-1].rate <= 1


def test_a_system_without_an_end_is_given_up_on() -> None:
    probes = search(float("inf"), 1.0, 0.1)
    assert len(probes) == PROBES_MAX


def test_a_rate_that_was_met_by_luck_above_one_that_was_missed_does_not_count() -> None:
    assert sustained([Probe(100), Probe(200, "p99"), Probe(400)]) == 100
