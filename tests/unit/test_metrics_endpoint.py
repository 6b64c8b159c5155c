"""Prometheus reads the metrics that were last written, under their names, and nothing else."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
import structlog
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector
from structlog.testing import capture_logs

from bettong import metrics
from bettong.edges.account_differences import Partitions
from bettong.edges.metrics_endpoint import Identity, MetricsEndpoint, families
from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.edges.redis_store.live import MetricValues
from bettong.errors import SettingsError, StoreError
from bettong.identifiers import PartitionId
from bettong.latency import BOUNDS_S, LatencyCounts
from bettong.local.addresses import LOOPBACK, free_ports
from bettong.queue_metrics import CLIENTS, SUBSCRIBERS
from docs.render import QUERIES
from tests.servers.scraped import Scraped

NOBODY = f"redis://:secret-word@{LOOPBACK}:1"  # a port that no test may have
LOG = structlog.get_logger()
SENDER: MetricValues = {
    "service": "sender",
    "state": "waiting",
    "since": 1700000000,
    "detail": "waiting for Kafka, secret-word",
    "messages": 1500,
    "lag/trades": 7,
    "buffered": 1024,
    "dead_letter_last": "orders: secret-word",
}
RECEIVER: MetricValues = {
    "service": "receiver",
    "messages": 40,
    "messages/out": 30,
    "messages/other": 10,
    "lag": 3,
    "lag/out": 5,
    "latency_p50_ms": 12.5,
    "latency_p99_ms/out": 250,
    "latency": LatencyCounts([0, 0, 0, 0, 30, 0, 0, 10, *[0] * 7, 2], 130.5).to_text(),
    "latency/out": LatencyCounts([0] * len(BOUNDS_S) + [1], 61.0).to_text(),
    "latency_part/a/b/inside-worker": LatencyCounts([3, *[0] * len(BOUNDS_S)], 0.0015).to_text(),
    "latency_parts/a/b": "for people",
}
PROCESSOR: MetricValues = {
    "service": "processor",
    "batch": "12",
    "batch_ms": 160.0,
    "lag": 9,
    "lag/a/b/0": 9,
}
PARTITIONS: Partitions = {
    PartitionId("a/b", 0): {
        "offset": "10",
        "messages": "900",
        "latency_max_ms": "1.5",
        "latency": LatencyCounts([0, 3, *[0] * 14], 0.0045).to_text(),
    }
}

LATENCIES = [each.name for each in metrics.SERIES if each.metric in metrics.HISTOGRAMS]


def buckets(name: str, counts: Mapping[float, int], *labels: str) -> dict[tuple[str, ...], float]:
    """The buckets of a histogram: `counts` at their bounds and above, up to the next one."""
    found, last = {}, 0
    for bound in (*BOUNDS_S, float("inf")):
        last = counts.get(bound, last)
        found[f"{name}_bucket", *labels, "+Inf" if bound == float("inf") else str(bound)] = float(last)
    return found


class _Reported(Collector):
    def __init__(self, found: list[Metric]) -> None:
        self.found = found

    def collect(self) -> list[Metric]:
        return self.found


def reported(record: MetricValues, partitions: Partitions | None = None) -> Scraped:
    registry = CollectorRegistry()
    registry.register(_Reported(families(record, partitions or {})))
    return Scraped(generate_latest(registry).decode())


def test_a_senders_metrics_have_names_and_base_units_and_no_texts() -> None:
    assert reported(SENDER).values == {
        ("bettong_state_entered_timestamp_seconds",): 1700000000,
        ("bettong_sender_messages_total",): 1500,
        ("bettong_sender_buffered_bytes",): 1024,
        ("bettong_sender_topic_lag_records", "trades"): 7,
    }


def test_a_receivers_are_reported_by_sink_and_times_in_seconds() -> None:
    assert reported(RECEIVER).values == {
        ("bettong_receiver_messages_total", "out"): 30,
        ("bettong_receiver_messages_total", "other"): 10,
        ("bettong_receiver_lag_records",): 3,
        ("bettong_receiver_destination_lag_records", "out"): 5,
        **buckets("bettong_receiver_latency_seconds", {0.02: 30, 0.2: 40, float("inf"): 42}),
        ("bettong_receiver_latency_seconds_sum",): 130.5,
        ("bettong_receiver_latency_seconds_count",): 42,
        **buckets("bettong_receiver_sink_latency_seconds", {float("inf"): 1}, "out"),
        ("bettong_receiver_sink_latency_seconds_sum", "out"): 61.0,
        ("bettong_receiver_sink_latency_seconds_count", "out"): 1,
        **buckets("bettong_receiver_latency_part_seconds", {0.001: 3}, "a/b", "inside-worker"),
        ("bettong_receiver_latency_part_seconds_sum", "a/b", "inside-worker"): 0.0015,
        ("bettong_receiver_latency_part_seconds_count", "a/b", "inside-worker"): 3,
    }


def test_a_processors_partitions_are_reported_by_stage_and_number() -> None:
    found = reported(PROCESSOR, PARTITIONS)
    assert found.values == {
        ("bettong_processor_batch",): 12,
        ("bettong_processor_batch_duration_seconds",): 0.16,
        ("bettong_processor_lag_records",): 9,
        ("bettong_partition_lag_records", "a/b", "0"): 9,
        ("bettong_partition_offset", "a/b", "0"): 10,
        ("bettong_partition_messages_total", "a/b", "0"): 900,
        **buckets("bettong_partition_latency_seconds", {0.002: 3}, "a/b", "0"),
        ("bettong_partition_latency_seconds_sum", "a/b", "0"): 0.0045,
        ("bettong_partition_latency_seconds_count", "a/b", "0"): 3,
    }
    assert found.kinds["bettong_partition_latency_seconds_bucket"] == "histogram"
    assert found.kinds["bettong_partition_messages_total"] == "counter"
    assert found.kinds["bettong_partition_offset"] == "gauge"


def test_names_follow_the_conventions_and_no_two_series_meet() -> None:
    for each in metrics.SERIES:
        assert re.fullmatch(r"bettong_[a-z]+(_[a-z]+)+", each.name)
        if each.metric.unit in {"ms", "Unix s"}:
            assert each.name.endswith("_seconds")
    names = [each.name for each in metrics.SERIES]
    assert len(names) == len(set(names))
    reported_metrics = {each.metric for each in metrics.SERIES} | {metrics.SERVICE, metrics.STATE}
    left_out = {each for each in metrics.ALL if each.unit == "text"}
    left_out |= {metrics.LATENCY_P50, metrics.LATENCY_P99, metrics.LATENCY_MAX}  # cannot be aggregated
    left_out |= {metrics.EVENT_PROGRESS}  # an origin is no label; WATERMARK
    left_out |= {metrics.LATENCY_PERCENTILES}  # nor these; LATENCY
    left_out |= {CLIENTS, SUBSCRIBERS}  # clients are no labels; WITHOUT_CREDIT, STALLED_SUBSCRIBERS
    left_out |= {metrics.HOT_KEYS, metrics.LATENCY_PARTS}  # a key is no label; HOT_KEY_SHARE, LATENCY_PART
    assert reported_metrics | left_out == set(metrics.ALL), "every other number is served"
    assert reported_metrics & left_out == {metrics.SERVICE, metrics.STATE}


def test_queries_of_the_docs_ask_for_buckets_that_there_are() -> None:
    known = {f"{name}{part}" for name in LATENCIES for part in ("_bucket", "_sum", "_count")}
    for query in QUERIES.values():
        assert set(re.findall(r"bettong_\w+", query)) <= known
        assert {float(bound) for bound in re.findall(r'le="([^"]+)"', query)} <= set(BOUNDS_S)


def test_a_histogram_says_between_which_bounds_a_quantile_lies() -> None:
    found = reported(RECEIVER)
    assert found.quantile("bettong_receiver_latency_seconds", 0.5) == (0.01, 0.02)
    assert found.quantile("bettong_receiver_latency_seconds", 0.9) == (0.1, 0.2)
    assert found.quantile("bettong_receiver_latency_seconds", 0.99) == (60.0, float("inf"))


def test_an_endpoint_serves_the_last_record_also_while_redis_is_away() -> None:
    address = f"{LOOPBACK}:{free_ports(1)[0]}"
    identity = Identity("sender", "shop", "sender-1")
    with RedisStore(NOBODY, "shop") as store:
        live = LiveMetrics(store)
        with MetricsEndpoint(address, identity, live, LOG), capture_logs():
            with pytest.raises(StoreError):
                live.write_live("sender-1", SENDER, 10.0)
            found = Scraped.at(address)
    assert found["bettong_sender_messages_total"] == 1500
    assert (found["bettong_state", "waiting"], found["bettong_state", "running"]) == (1, 0)
    assert ("bettong_partition_metrics_readable",) not in found.values, "it is the processors' metric"
    assert ("bettong_heartbeat_age_seconds",) not in found.values, "Redis took none"
    assert "secret-word" not in str(found.values)


def test_a_processor_says_when_the_metrics_of_partitions_cannot_be_read() -> None:
    address = f"{LOOPBACK}:{free_ports(1)[0]}"
    with RedisStore(NOBODY, "shop") as store:
        live = LiveMetrics(store)
        with (
            MetricsEndpoint(address, Identity("processor", "shop", "processor-1"), live, LOG),
            capture_logs(),
        ):
            with pytest.raises(StoreError):
                live.write_live("processor-1", PROCESSOR, 10.0)
            found = Scraped.at(address)
    assert found["bettong_processor_batch"] == 12
    assert found["bettong_partition_metrics_readable"] == 0


def test_an_address_that_is_taken_is_a_wrong_setting() -> None:
    identity = Identity("sender", "shop", "sender-1")
    with RedisStore(NOBODY, "shop") as store:
        live, address = LiveMetrics(store), f"{LOOPBACK}:{free_ports(1)[0]}"
        with (
            MetricsEndpoint(address, identity, live, LOG),
            pytest.raises(SettingsError, match="BETTONG_METRICS_LISTEN: cannot listen"),
            MetricsEndpoint(address, identity, live, LOG),
        ):
            pass


def test_without_a_setting_nothing_listens(tmp_path: Path) -> None:
    with RedisStore(NOBODY, "shop") as store, capture_logs() as said:
        with MetricsEndpoint(None, Identity("sender", "shop", "sender-1"), LiveMetrics(store), LOG):
            pass
        assert said == []
