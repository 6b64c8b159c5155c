"""How fast a partition is folded, between two reports."""

from bettong import metrics
from bettong.latency import BOUNDS_S, LatencyCounts
from bettong_processor.resident.measuring import Measure

MS = 1_000_000


def reported(measure: Measure, messages: int, lag: int | None, now_s: float) -> dict[str, float | str]:
    """Its metrics of late."""
    found = measure.metrics(messages=messages, lag=lag, now_s=now_s)
    del found[metrics.LATENCY.name]
    return found


def counts(measure: Measure) -> LatencyCounts:
    return LatencyCounts.parse(str(measure.metrics(messages=0, lag=None, now_s=0.0)[metrics.LATENCY.name]))


def test_rate_lag_and_latency_are_those_since_the_last_report() -> None:
    measure = Measure()
    measure.metrics(messages=100, lag=None, now_s=10.0)
    for late_ms in range(1, 101):
        measure.note(taken_in_ns=0, now_ns=late_ms * MS)
    assert reported(measure, messages=600, lag=3, now_s=12.0) == {
        metrics.RATE.name: 250,
        metrics.LAG.name: 3,
        metrics.LATENCY_P50.name: 51.0,
        metrics.LATENCY_P99.name: 100.0,
        metrics.LATENCY_MAX.name: 100.0,
    }


def test_what_is_not_known_is_reported_so_and_no_older_metric_stays_for_it() -> None:
    no_latency = {
        metrics.LATENCY_P50.name: "",
        metrics.LATENCY_P99.name: "",
        metrics.LATENCY_MAX.name: "",
    }
    measure = Measure()
    assert reported(measure, messages=100, lag=None, now_s=10.0) == {metrics.RATE.name: "", **no_latency}
    measure.note(taken_in_ns=0, now_ns=MS)
    assert measure.metrics(messages=101, lag=0, now_s=11.0)[metrics.LATENCY_MAX.name] == 1.0
    assert reported(measure, messages=101, lag=0, now_s=12.0) == {
        metrics.RATE.name: 0,
        metrics.LAG.name: 0,
        **no_latency,
    }


def test_clocks_that_disagree_give_no_negative_latency() -> None:
    measure = Measure()
    measure.note(taken_in_ns=5 * MS, now_ns=MS)
    assert measure.metrics(messages=1, lag=0, now_s=1.0)[metrics.LATENCY_P50.name] == 0
    assert counts(measure) == LatencyCounts([1, *[0] * len(BOUNDS_S)], 0.0)


def test_only_the_newest_frames_are_remembered() -> None:
    measure = Measure()
    measure.note(taken_in_ns=0, now_ns=10**12)
    for _ in range(10_000):
        measure.note(taken_in_ns=0, now_ns=MS)
    assert measure.metrics(messages=1, lag=0, now_s=1.0)[metrics.LATENCY_MAX.name] == 1.0


def test_all_frames_since_the_beginning_are_counted_by_bucket() -> None:
    measure = Measure()
    for _ in range(2):
        for _ in range(6000):
            measure.note(taken_in_ns=0, now_ns=2 * MS)
        measure.metrics(messages=1, lag=0, now_s=1.0)
    measure.note(taken_in_ns=0, now_ns=2 * MS + 1)
    measure.note(taken_in_ns=0, now_ns=61_000 * MS)
    found = counts(measure)
    assert list(found.counts) == [0, 12_000, 1, *[0] * (len(BOUNDS_S) - 3), 1]
    assert abs(found.sum_s - (12_001 * 0.002 + 61)) < 1e-5
