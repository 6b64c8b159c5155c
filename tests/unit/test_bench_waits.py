"""How late results were, and measurements of which less is better."""

import pytest
from hdrh.histogram import HdrHistogram

from benchmarks.measuring import Bar, Measurement, Sample
from benchmarks.waits import Waits


def test_percentiles_are_those_of_what_was_noted() -> None:
    waits = Waits()
    for late_ms in range(1, 1001):
        waits.note(late_ms / 1000)
    assert [each.value for each in waits.samples()] == pytest.approx([500, 990, 999], rel=0.002)
    assert str(waits).endswith("max 1000.3 ms of 1,000")


def test_the_histogram_itself_goes_with_its_percentiles() -> None:
    waits = Waits()
    for wait_ns in (10_000, 20_000, 90_000):
        waits.note_ns(wait_ns)
    (middle,) = waits.samples((50,), unit_ns=1000)
    assert middle.value == pytest.approx(20, rel=0.002)
    kept = HdrHistogram.decode(middle.histogram)
    assert kept.get_total_count() == 3
    assert kept.get_max_value() == pytest.approx(90_000, rel=0.002)


def test_a_clock_that_goes_back_is_no_fault() -> None:
    waits = Waits()
    waits.note(-0.5)
    assert waits.samples()[0].value == 1e-6


@pytest.mark.parametrize("unit", ["us", "ms", "s", "% of a core"])
def test_of_a_cost_half_its_bar_is_twice_as_good(unit: str) -> None:
    assert Measurement("cost", unit, Bar(10, 1), [Sample(5.0)]).of_bar == 2
