"""What Spark's progress reports of a query say, in our own figures. Pure."""

from collections.abc import Mapping

from bettong import metrics


def figures_of(progress: Mapping[str, object] | None) -> dict[str, str | float]:
    """Live figures of Spark's last progress report; none before the first."""
    if not progress:
        return {}
    durations = progress.get("durationMs")
    figures: dict[str, str | float] = {metrics.BATCH.name: str(progress["batchId"])}
    if isinstance(durations, Mapping):
        figures[metrics.BATCH_MS.name] = float(durations.get("triggerExecution", 0))
    sources = progress.get("sources")
    if isinstance(sources, list) and sources:
        figures[metrics.LAG.name] = lag_of(sources[0])
    return figures


def durations_of(progress: Mapping[str, object] | None) -> dict[str, object]:
    """Where the time of the last batch went, in ms, as Spark names it."""
    durations = progress.get("durationMs") if progress else None
    return {"batch": progress["batchId"], **durations} if progress and isinstance(durations, Mapping) else {}


def lag_of(source: Mapping[str, object]) -> int:
    """Records in the log beyond the last batch, by a source's progress: {topic: {partition: offset}}."""
    latest, end = source.get("latestOffset"), source.get("endOffset")
    if not isinstance(latest, Mapping) or not isinstance(end, Mapping):
        return 0
    return sum(
        int(offset) - int(end.get(topic, {}).get(partition, 0))
        for topic, offsets in latest.items()
        for partition, offset in offsets.items()
    )
