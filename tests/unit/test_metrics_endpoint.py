"""What Prometheus is told: the metrics that were written last, by their names, and nothing else."""

import re
from pathlib import Path

import pytest
import structlog
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector
from structlog.testing import capture_logs

from bettong import metrics
from bettong.edges.metrics_endpoint import Identity, MetricsEndpoint, Partitions, families
from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.edges.redis_store.live import MetricValues
from bettong.errors import SettingsError, StoreError
from bettong.local.addresses import LOOPBACK, free_ports
from tests.servers.scraped import Scraped

NOBODY = f"redis://:secret-word@{LOOPBACK}:{free_ports(1)[0]}"
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
}
PROCESSOR: MetricValues = {
    "service": "processor",
    "batch": "12",
    "batch_ms": 160.0,
    "lag": 9,
    "lag/a/b/0": 9,
}
PARTITIONS: Partitions = {("a/b", 0): {"offset": "10", "messages": "900", "latency_max_ms": "1.5"}}


class _Told(Collector):
    def __init__(self, found: list[Metric]) -> None:
        self.found = found

    def collect(self) -> list[Metric]:
        return self.found


def told(record: MetricValues, partitions: Partitions | None = None) -> Scraped:
    registry = CollectorRegistry()
    registry.register(_Told(families(record, partitions or {})))
    return Scraped(generate_latest(registry).decode())


def test_a_senders_metrics_have_names_and_base_units_and_no_texts() -> None:
    assert told(SENDER).values == {
        ("bettong_state_entered_timestamp_seconds",): 1700000000,
        ("bettong_sender_messages_total",): 1500,
        ("bettong_sender_buffered_bytes",): 1024,
        ("bettong_sender_topic_lag_records", "trades"): 7,
    }


def test_a_receivers_are_told_by_sink_and_times_in_seconds() -> None:
    assert told(RECEIVER).values == {
        ("bettong_receiver_messages_total", "out"): 30,
        ("bettong_receiver_messages_total", "other"): 10,
        ("bettong_receiver_lag_records",): 3,
        ("bettong_receiver_destination_lag_records", "out"): 5,
        ("bettong_receiver_latency_seconds", "0.5"): 0.0125,
        ("bettong_receiver_sink_latency_seconds", "out", "0.99"): 0.25,
    }


def test_a_processors_partitions_are_told_by_stage_and_number() -> None:
    found = told(PROCESSOR, PARTITIONS)
    assert found.values == {
        ("bettong_processor_batch",): 12,
        ("bettong_processor_batch_duration_seconds",): 0.16,
        ("bettong_processor_lag_records",): 9,
        ("bettong_partition_lag_records", "a/b", "0"): 9,
        ("bettong_partition_offset", "a/b", "0"): 10,
        ("bettong_partition_messages_total", "a/b", "0"): 900,
        ("bettong_partition_latency_seconds", "a/b", "0", "1"): 0.0015,
    }
    assert found.kinds["bettong_partition_messages_total"] == "counter"
    assert found.kinds["bettong_partition_offset"] == "gauge"


def test_names_follow_the_conventions_and_no_two_series_meet() -> None:
    for each in metrics.SERIES:
        assert re.fullmatch(r"bettong_[a-z]+(_[a-z]+)+", each.name)
        if each.metric.unit in {"ms", "Unix s"}:
            assert each.name.endswith("_seconds")
    keys = [(each.name, each.labels, each.scope, each.quantile) for each in metrics.SERIES]
    assert len(keys) == len(set(keys))
    told_metrics = {each.metric for each in metrics.SERIES} | {metrics.SERVICE, metrics.STATE}
    texts = {each for each in metrics.ALL if each.unit == "text"}
    assert told_metrics | texts == set(metrics.ALL), "every number is told, every text is left out"


def test_an_endpoint_tells_the_last_record_also_while_redis_is_away() -> None:
    address = f"{LOOPBACK}:{free_ports(1)[0]}"
    identity = Identity("sender", "shop", "sender-1")
    with RedisStore(NOBODY, "shop") as store:
        live = LiveMetrics(store)
        with MetricsEndpoint(address, identity, live, LOG, partitions=True), capture_logs():
            with pytest.raises(StoreError):
                live.write_live("sender-1", SENDER, 10.0)
            found = Scraped.at(address)
    assert found["bettong_sender_messages_total"] == 1500
    assert (found["bettong_state", "waiting"], found["bettong_state", "running"]) == (1, 0)
    assert found["bettong_partition_figures_readable"] == 0
    assert ("bettong_heartbeat_age_seconds",) not in found.values, "Redis took none"
    assert "secret-word" not in str(found.values)


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
