"""How late results were, and figures of which less is better."""

import pytest

from benchmarks.measuring import Bar, Figure, Sample
from benchmarks.waits import Waits


def test_percentiles_are_those_of_what_was_noted() -> None:
    waits = Waits()
    for late_ms in range(1, 1001):
        waits.note(late_ms / 1000)
    assert [each.value for each in waits.samples()] == pytest.approx([500, 990, 999], rel=0.002)
    assert str(waits).endswith("max 1000.4 ms of 1,000")


def test_a_clock_that_goes_back_is_no_fault() -> None:
    waits = Waits()
    waits.note(-0.5)
    assert waits.samples()[0].value == 0.001


@pytest.mark.parametrize("unit", ["us", "ms", "s", "% of a core"])
def test_of_a_cost_half_its_bar_is_twice_as_good(unit: str) -> None:
    assert Figure("cost", unit, Bar(10, 1), [Sample(5.0)]).of_bar == 2
