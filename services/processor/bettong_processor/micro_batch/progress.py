"""What Spark's progress reports of a query say, in our own metrics. Pure."""

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
    """For each (topic, partition) where the last batch that Spark has committed ends, by its progress report."""
    sources = progress.get("sources") if progress else None
    return _offsets(sources[0].get("endOffset")) if isinstance(sources, list) and sources else {}


def durations_of(progress: Mapping[str, object] | None) -> dict[str, object]:
    """Where the time of the last batch went, in ms, as Spark names it."""
    durations = progress.get("durationMs") if progress else None
    return {"batch": progress["batchId"], **durations} if progress and isinstance(durations, Mapping) else {}


def _offsets(reported: object) -> dict[TopicPartition, int]:
    """By (topic, partition). Spark gives them as JSON text, or read already; none before the first batch."""
    offsets = json.loads(reported) if isinstance(reported, str) else reported
    if not isinstance(offsets, Mapping):
        return {}
    return {
        TopicPartition(topic, int(partition)): int(offset)
        for topic, each in offsets.items()
        for partition, offset in each.items()
    }
