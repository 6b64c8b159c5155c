"""Converts Spark's progress reports of a query to Bettong's metrics. Pure."""

import json
from collections.abc import Mapping

from bettong import metrics
from bettong.identifiers import TopicPartition


def metrics_of(progress: Mapping[str, object] | None) -> dict[str, str | float]:
    """Live metrics of Spark's last progress report; none before the first."""
    if not progress:
        return {}
    durations = progress.get("durationMs")
    metric_values: dict[str, str | float] = {metrics.BATCH.name: str(progress["batchId"])}
    if isinstance(durations, Mapping):
        metric_values[metrics.BATCH_MS.name] = float(durations.get("triggerExecution", 0))
    return metric_values


def ends_of(progress: Mapping[str, object] | None) -> dict[TopicPartition, int]:
    """The end offset of the last committed batch for each (topic, partition), from its progress report."""
    sources = progress.get("sources") if progress else None
    return offsets_of(sources[0].get("endOffset")) if isinstance(sources, list) and sources else {}


def durations_of(progress: Mapping[str, object] | None) -> dict[str, object]:
    """The duration of each phase of the last batch, in ms, under Spark's names."""
    durations = progress.get("durationMs") if progress else None
    return {"batch": progress["batchId"], **durations} if progress and isinstance(durations, Mapping) else {}


def offsets_of(reported: object) -> dict[TopicPartition, int]:
    """Offsets by (topic, partition). Spark reports them as JSON text or parsed; none before the first batch."""
    offsets = json.loads(reported) if isinstance(reported, str) else reported
    if not isinstance(offsets, Mapping):
        return {}
    return {
        TopicPartition(topic, int(partition)): int(offset)
        for topic, each in offsets.items()
        for partition, offset in each.items()
    }
