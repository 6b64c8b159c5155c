"""The state and the latency that the receiver reports."""

import timeit

import numpy as np
import pytest
import structlog
from hdrh.histogram import HdrHistogram
from structlog.testing import capture_logs

from bettong import metrics
from bettong.identifiers import TopicPartition
from bettong.latency import BOUNDS_S, LatencyCounts
from bettong.topics import DEAD_LETTERS
from bettong_receiver.latency import Latency
from bettong_receiver.status import RUNNING, ReceiverStatus

MS = 1_000_000


class Clock:
    """A clock that a test sets."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_a_wait_replaces_the_state_until_the_part_answers() -> None:
    clock = Clock()
    status = ReceiverStatus(clock, structlog.get_logger())
    status.set_state(RUNNING)
    clock.now_s = 107.0
    status.set_waiting("Kafka", "no broker answers")
    status.set_waiting("Redis", "it is away")
    assert status.metrics() == {
        metrics.SERVICE.name: "receiver",
        metrics.STATE.name: "waiting",
        metrics.SINCE.name: 107.0,
        metrics.DETAIL.name: "no broker answers; it is away",
    }
    clock.now_s = 109.0
    status.clear_waiting("Kafka")
    assert status.metrics()[metrics.DETAIL.name] == "it is away"
    status.clear_waiting("Redis")
    assert status.metrics() == {
        metrics.SERVICE.name: "receiver",
        metrics.STATE.name: RUNNING,
        metrics.SINCE.name: 109.0,
        metrics.DETAIL.name: "",
    }


def test_a_wait_is_logged_at_once_and_then_at_intervals() -> None:
    clock = Clock()
    status = ReceiverStatus(clock, structlog.get_logger())
    with capture_logs() as lines:
        for _ in range(100):
            status.set_waiting("Kafka", "no broker answers")
            clock.now_s += 0.25
        status.clear_waiting("Kafka")
        status.clear_waiting("Kafka")
    assert [line["event"] for line in lines] == ["waiting", "waiting", "waiting", "answers again"]


def test_latency_is_weighted_by_messages() -> None:
    latency = Latency(["raw"])
    latency.record("raw", sent_ns=1, delivered_ns=1 + 2 * MS, messages=99)
    latency.record("raw", sent_ns=1, delivered_ns=1 + 900 * MS, messages=1)
    metric_values = latency.metrics()
    assert round(metric_values["latency_p50_ms"], 1) == 2.0
    assert round(metric_values["latency_p99_ms"], 1) == 2.0
    assert round(metric_values["latency_max_ms"]) == 900


def test_a_burst_leaves_the_latency_with_its_window() -> None:
    clock = Clock()
    latency = Latency(["raw", "other"], monotonic_s=clock)
    latency.record("raw", sent_ns=1, delivered_ns=1 + 9000 * MS, messages=10)
    for _ in range(5):
        clock.now_s += 10.0
        latency.record("other", sent_ns=1, delivered_ns=1 + 2 * MS, messages=100)
        assert round(latency.metrics()["latency_max_ms"]) in (9000, 9003)
    clock.now_s += metrics.LATENCY_WINDOW_S - 40.0
    metric_values = latency.metrics()
    assert round(metric_values["latency_max_ms"]) == 2
    assert "latency_p50_ms/raw" not in metric_values
    assert round(metric_values["latency_p50_ms/other"]) == 2
    clock.now_s += 1000.0
    assert latency.metrics() == {}


def test_latency_ignores_frames_without_a_send_time_and_its_total_dead_letters() -> None:
    latency = Latency(["raw", DEAD_LETTERS])
    latency.record("raw", sent_ns=0, delivered_ns=5 * MS, messages=1)
    assert latency.metrics() == {}
    latency.record(DEAD_LETTERS, sent_ns=1, delivered_ns=5 * MS, messages=1)
    assert set(latency.metrics()) == {f"latency_{each}_ms/dead-letters" for each in ("p50", "p99", "max")}


def test_latency_is_bounded_below_and_above() -> None:
    latency = Latency(["raw"])
    latency.record("raw", sent_ns=10 * MS, delivered_ns=1, messages=1)
    assert latency.metrics()["latency_max_ms"] == 0.001
    latency.record("raw", sent_ns=1, delivered_ns=10**18, messages=1)
    assert round(latency.metrics()["latency_max_ms"] / 3_600_000, 2) == 1.0


def test_every_result_is_counted_by_bucket_since_the_beginning_also_after_its_window() -> None:
    clock = Clock()
    latency = Latency(["raw", "other", DEAD_LETTERS], monotonic_s=clock)
    for sent_ms, delivered_ms, messages in ((1, 3, 5), (1, 61, 7), (1, 70_000, 2), (9, 1, 1)):
        latency.record("raw", sent_ns=sent_ms * MS, delivered_ns=delivered_ms * MS, messages=messages)
        clock.now_s += 3 * metrics.LATENCY_WINDOW_S
        latency.metrics()
    latency.record("other", sent_ns=1 * MS, delivered_ns=3 * MS, messages=4)
    latency.record(DEAD_LETTERS, sent_ns=1, delivered_ns=5 * MS, messages=8)
    found = {name: LatencyCounts.parse(text) for name, text in latency.counts().items()}
    at = {bound: index for index, bound in enumerate([*BOUNDS_S, None])}
    raw = found["latency/raw"].counts
    assert (raw[at[0.001]], raw[at[0.002]], raw[at[0.1]], raw[at[None]]) == (1, 5, 7, 2)
    assert sum(raw) == 15
    assert found["latency"].counts[at[0.002]] == 9
    assert sum(found["latency"].counts) == 19, "dead letters are apart"
    assert sum(found["latency/dead-letters"].counts) == 8
    assert found["latency/raw"].sum_s == pytest.approx(5 * 0.002 + 7 * 0.06 + 2 * 69.999 + 1e-6)


@pytest.mark.parametrize("bound_s", BOUNDS_S)
def test_a_latency_lies_in_its_bucket_to_three_digits(bound_s: float) -> None:
    latency = Latency(["raw"])
    for part in (0.998, 1.0, 1.002):
        latency.record("raw", sent_ns=1, delivered_ns=1 + round(part * bound_s * 1e9), messages=1)
    counts = LatencyCounts.parse(latency.counts()["latency"]).counts
    index = BOUNDS_S.index(bound_s)
    assert (counts[index], counts[index + 1]) == (2, 1)


def test_lag_is_the_number_of_records_between_the_delivered_offsets_and_the_ends() -> None:
    assert (
        metrics.lag(
            {TopicPartition("a", 0): 10, TopicPartition("a", 1): 3},
            {TopicPartition("a", 0): 4, TopicPartition("a", 1): 3},
        )
        == 6
    )
    assert (
        metrics.lag({TopicPartition("a", 0): 3}, {TopicPartition("a", 0): 5, TopicPartition("a", 1): 3}) == 0
    )


def test_percentiles_are_read_without_a_walk_through_the_counts() -> None:
    """Percentiles are reported twice a second, on the event loop that serves subscribers."""
    waits_us = np.random.default_rng(7).integers(1, 60_000_000, 2000).tolist()
    sinks = [f"sink-{number}" for number in range(10)]
    latency, reference = Latency(sinks), HdrHistogram(1, 3_600_000_000, 3)
    for index, wait_us in enumerate(waits_us):
        reference.record_value(wait_us)
        latency.record(sinks[index % 10], sent_ns=1, delivered_ns=1 + wait_us * 1000, messages=1)
    metrics_s = min(timeit.repeat(latency.metrics, number=1, repeat=5))
    walk_s = min(timeit.repeat(lambda: reference.get_value_at_percentile(99), number=1, repeat=5))
    metric_values = latency.metrics()
    assert metric_values[metrics.LATENCY_P50.name] == reference.get_value_at_percentile(50) / 1000
    assert metric_values[metrics.LATENCY_P99.name] == reference.get_value_at_percentile(99) / 1000
    assert metrics_s < 4 * walk_s, "22 percentiles take longer than 4 walks"
