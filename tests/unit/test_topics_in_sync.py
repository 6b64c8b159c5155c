"""How many replicas have what is acknowledged, asked of a cluster of several brokers that is not there."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from bettong.edges.kafka_log import LogAdmin
from bettong.edges.kafka_log.in_sync import MIN_IN_SYNC, in_sync_settings

NODES = list(range(9))


class Cluster:
    """Its topics: replicas and settings, in kafka-python's form."""

    def __init__(self) -> None:
        self.topics: dict[str, dict[str, Any]] = {}

    def create_topics(
        self, wanted: dict[str, dict[str, Any]], *, raise_errors: bool
    ) -> dict[str, list[dict[str, Any]]]:
        """Creates what it does not have."""
        assert not raise_errors
        self.topics = wanted | self.topics
        return {"topics": [{"name": name, "error_code": 0, "error_message": None} for name in wanted]}

    def wait_for_topics(self, topics: Sequence[str], *, timeout_ms: int) -> None:
        """They are there at once."""

    def describe_topics(self, names: Sequence[str]) -> list[dict[str, Any]]:
        """Each with one partition."""
        return [
            {
                "name": name,
                "error_code": 0,
                "partitions": [{"replica_nodes": NODES[: self.topics[name]["replication_factor"]]}],
            }
            for name in names
        ]

    def describe_configs(
        self, resources: Sequence[SimpleNamespace], *, config_filter: str
    ) -> dict[str, dict[str, dict[str, dict[str, str]]]]:
        """The cluster's own setting is Kafka's default."""
        assert config_filter == "all"
        found = {each.name: {MIN_IN_SYNC: "1"} | self.topics[each.name]["configs"] for each in resources}
        return {
            "topic": {
                name: {key: {"value": value} for key, value in each.items()} for name, each in found.items()
            }
        }

    def close(self) -> None:
        """Nothing to close."""


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    found = Cluster()
    monkeypatch.setattr("bettong.edges.kafka_log.admin.connect", lambda *_, **__: found)
    return found


@pytest.mark.parametrize(("replication", "in_sync"), [(1, None), (2, None), (3, "2"), (5, "2")])
def test_of_three_replicas_or_more_two_acknowledge(
    cluster: Cluster, replication: int, in_sync: str | None
) -> None:
    with LogAdmin("nowhere:1") as admin:
        admin.create_topics(["log"], partitions=1, replication=replication, frame_bytes_max=5000)
        assert cluster.topics["log"]["configs"].get(MIN_IN_SYNC) == in_sync
        assert admin.on_one_broker(["log"]) == []


def test_the_clusters_own_number_of_replicas_leaves_it_its_own_settings() -> None:
    assert in_sync_settings(-1) == {}


def test_topics_that_were_made_with_replicas_and_acknowledge_with_one_are_named(cluster: Cluster) -> None:
    cluster.topics = {
        "old": {"replication_factor": 3, "configs": {}},
        "set": {"replication_factor": 3, "configs": {MIN_IN_SYNC: "2"}},
        "single": {"replication_factor": 1, "configs": {}},
    }
    with LogAdmin("nowhere:1") as admin:
        assert admin.on_one_broker(["old", "set", "single"]) == ["old"]
