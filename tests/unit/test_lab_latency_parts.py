"""The parts of latencies in a run: means of what receivers count, after the warm-up, over their restarts."""

from __future__ import annotations

import pytest

from bettong.lab.latency_parts import PartsSample, PartTotals, part_points, totals
from bettong.lab.measures import part_means
from bettong.latency import BOUNDS_S, LatencyCounts
from bettong.latency_parts import PARTS

BEGIN_S = 1_000.0
RECEIVER = "receiver"
WORDS = ["client to log", "log to worker", "inside worker", "log to receiver", "receiver to sink"]


def record(sink: str, results: int, *sums_s: float) -> dict[str, str]:
    """The live record of a receiver that has counted so much of a sink since it started."""
    counts = [results, *[0] * len(BOUNDS_S)]
    return {
        f"latency_part/{sink}/{part}": LatencyCounts(counts, sum_s).to_text()
        for part, sum_s in zip(PARTS, sums_s, strict=True)
    }


def sample(after_s: float, **sinks: PartTotals) -> PartsSample:
    return PartsSample(BEGIN_S + after_s, {(RECEIVER, sink): each for sink, each in sinks.items()})


def spent(results: int, *sums_s: float) -> PartTotals:
    return PartTotals(results, sums_s)


def test_totals_are_those_of_each_receiver_by_sink() -> None:
    found = totals(
        {
            "sender": {"sessions": "3"},
            "a": record("rejected", 4, 1.0, 2.0, 3.0, 4.0, 5.0)
            | record("alerts", 1, 0.1, 0.2, 0.3, 0.4, 0.5),
            "b": record("rejected", 2, 0.5, 0.5, 0.5, 0.5, 0.5),
        }
    )
    assert found == {
        ("a", "rejected"): spent(4, 1.0, 2.0, 3.0, 4.0, 5.0),
        ("a", "alerts"): spent(1, 0.1, 0.2, 0.3, 0.4, 0.5),
        ("b", "rejected"): spent(2, 0.5, 0.5, 0.5, 0.5, 0.5),
    }


@pytest.mark.parametrize("text", ["", "1 2 3", "many", "1 " * 15 + "?"])
def test_a_part_that_cannot_be_read_counts_as_nothing(text: str) -> None:
    garbled = record("rejected", 4, 1.0, 2.0, 3.0, 4.0, 5.0) | {"latency_part/rejected/log-to-worker": text}
    assert totals({"a": garbled, "b": {"latency_part/rejected/unheard-of": text}}) == {
        ("a", "rejected"): spent(4, 1.0, 0.0, 3.0, 4.0, 5.0)
    }


def test_means_are_of_the_results_after_the_warm_up() -> None:
    samples = [
        sample(0.0),
        sample(5.0, rejected=spent(100, 90.0, 90.0, 90.0, 90.0, 90.0)),
        sample(6.0, rejected=spent(200, 90.1, 90.2, 90.3, 90.4, 90.5)),
        sample(7.0, rejected=spent(300, 90.2, 90.4, 90.6, 90.8, 91.0)),
    ]
    found = part_means(samples, BEGIN_S + 5)
    assert [each.metric for each in found] == [f"rejected: {words}, mean" for words in WORDS]
    assert [each.value for each in found] == pytest.approx([1.0, 2.0, 3.0, 4.0, 5.0])
    assert {each.unit for each in found} == {"ms"}


def test_a_receiver_that_restarts_counts_from_nothing() -> None:
    samples = [
        sample(1.0, rejected=spent(100, 1.0, 1.0, 1.0, 1.0, 1.0)),
        sample(2.0, rejected=spent(110, 1.1, 1.1, 1.1, 1.1, 1.1)),
        sample(3.0, rejected=spent(10, 0.3, 0.3, 0.3, 0.3, 0.3)),
    ]
    assert [each.value for each in part_means(samples, BEGIN_S)] == pytest.approx([20.0] * 5)


def test_a_receiver_that_restarts_is_known_by_its_sums_too() -> None:
    """In a second, a new one may deliver more results than the one before in all its life."""
    samples = [
        sample(1.0, rejected=spent(100, 1.0, 1.0, 1.0, 1.0, 1.0)),
        sample(2.0, rejected=spent(200, 0.2, 0.2, 0.2, 0.2, 0.2)),
    ]
    assert [each.value for each in part_means(samples, BEGIN_S)] == pytest.approx([1.0] * 5)


def test_a_sample_that_lacks_a_sink_does_not_count_its_past_again() -> None:
    samples = [
        sample(1.0, rejected=spent(100, 10.0, 10.0, 10.0, 10.0, 10.0)),
        sample(2.0),
        sample(3.0, rejected=spent(110, 10.1, 10.1, 10.1, 10.1, 10.1)),
    ]
    for since_s in (BEGIN_S, BEGIN_S + 2):
        assert [each.value for each in part_means(samples, since_s)] == pytest.approx([10.0] * 5)


def test_a_record_that_is_missing_is_no_restart_of_the_other_receiver() -> None:
    both = [{"a": 100, "b": 50}, {"b": 60}, {"a": 130, "b": 70}]
    seconds = {"a": 9.0, "b": 1.0}  # of each part, for a result
    samples = [
        PartsSample(
            BEGIN_S + number,
            {(name, "out"): spent(count, *[seconds[name] * count] * 5) for name, count in counted.items()},
        )
        for number, counted in enumerate(both)
    ]
    means_ms = [each.value for each in part_means(samples, BEGIN_S)]
    assert means_ms == pytest.approx([(30 * 9_000 + 20 * 1_000) / 50] * 5)


def test_a_part_without_time_and_a_sink_without_results_have_no_mean() -> None:
    samples = [sample(0.0), sample(1.0, quiet=PartTotals(), rejected=spent(1, 0.0, 0.1, 0.1, 0.1, 0.1))]
    assert [each.metric for each in part_means(samples, BEGIN_S)] == [
        f"rejected: {words}, mean" for words in WORDS[1:]
    ]
    assert part_means(samples[:1], BEGIN_S) == []


def test_points_are_of_what_came_between_two_samples() -> None:
    samples = [
        sample(0.0),
        sample(1.0, rejected=spent(10, 0.1, 0.2, 0.3, 0.4, 0.5)),
        sample(2.0, rejected=spent(10, 0.1, 0.2, 0.3, 0.4, 0.5)),
        sample(3.0, rejected=spent(30, 0.5, 1.0, 1.5, 2.0, 2.5)),
    ]
    found = [(each.at_s, each.metric, round(each.value, 6)) for each in part_points(samples, BEGIN_S)]
    assert found == [
        (at_s, f"rejected, {words}: part ms", scale * number)
        for at_s, scale in ((1.0, 10.0), (3.0, 20.0))
        for number, words in enumerate(WORDS, 1)
    ]
