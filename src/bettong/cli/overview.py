"""What the live figures of all services amount to: pure, from the records that `edges.redis_store` reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bettong import metrics
from bettong.metrics import Figure

Record = Mapping[str, str]
SERVICES = ("sender", "processor", "receiver")


@dataclass(frozen=True, slots=True)
class Overview:
    """Messages taken in, results delivered, and what is between. Latencies are None before the first result.

    `shared`: partitions that are folded on CPUs of others, where a worker was promised its own.
    """

    messages: int
    results: int
    dead_letters: int
    dead_letter_last: str
    skipped: int
    lag: int
    p50_ms: float | None
    p99_ms: float | None
    shared: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StageSummary:
    """All partitions of a stage together. `passed_over`: frames, duplicates and gaps."""

    stage: str
    partitions: int
    offset: int
    snapshot_offset: int
    messages: int
    results: int
    dead_letters: int
    skipped: int
    passed_over: int


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """One partition. What its schedule does not measure is None."""

    stage: str
    partition: int
    offset: int
    snapshot_offset: int | None
    messages: int
    lag: int | None
    messages_per_s: float | None
    p50_ms: float | None
    p99_ms: float | None


def overview(live: Mapping[str, Record], partitions: Mapping[tuple[str, int], Record]) -> Overview:
    """Messages are counted since the start of each sender; results and dead letters since the first record."""
    senders = [record for record in live.values() if service_of(record) == "sender"]
    receivers = [record for record in live.values() if service_of(record) == "receiver"]
    # A receiver reads the dead letters of all from their topic, each once. Partitions know those of their stage, and
    # among them what a sender refused on the way to it: the sender's figure would count that again.
    refused = receivers or partitions.values()
    last = [text for record in (*receivers, *senders) if (text := record.get(metrics.DEAD_LETTER_LAST.name))]
    return Overview(
        messages=_total(senders, metrics.MESSAGES),
        results=_total(receivers, metrics.MESSAGES),
        dead_letters=_total(refused, metrics.DEAD_LETTERS),
        dead_letter_last=last[0] if last else "",
        skipped=_total([*senders, *partitions.values(), *receivers], metrics.SKIPPED),
        lag=_total(live.values(), metrics.LAG),
        p50_ms=_worst(receivers, metrics.LATENCY_P50),
        p99_ms=_worst(receivers, metrics.LATENCY_P99),
        shared=tuple(
            f"{stage}/{partition}"
            for (stage, partition), record in sorted(partitions.items())
            if record.get(metrics.EXCLUSIVE.name) == "0"
        ),
    )


def stages(partitions: Mapping[tuple[str, int], Record]) -> list[StageSummary]:
    """One summary a stage, by name."""
    names = sorted({stage for stage, _ in partitions})
    return [
        StageSummary(
            stage=name,
            partitions=len(records),
            offset=_total(records, metrics.OFFSET),
            snapshot_offset=_total(records, metrics.SNAPSHOT_OFFSET),
            messages=_total(records, metrics.MESSAGES),
            results=_total(records, metrics.RESULTS),
            dead_letters=_total(records, metrics.DEAD_LETTERS),
            skipped=_total(records, metrics.SKIPPED),
            passed_over=_total(records, metrics.DUPLICATES) + _total(records, metrics.GAPS),
        )
        for name in names
        if (records := [record for (stage, _), record in partitions.items() if stage == name])
    ]


def partition_rows(
    live: Mapping[str, Record], partitions: Mapping[tuple[str, int], Record]
) -> list[PartitionRow]:
    """One row a partition, by stage and number. Lag is the driver's word, who knows it of those that nobody folds."""
    told = {
        name: value
        for record in live.values()
        if service_of(record) == "processor"
        for name, value in record.items()
    }
    rows = []
    for (stage, partition), record in sorted(partitions.items()):
        saved = _number(record, metrics.SNAPSHOT_OFFSET)
        lag = told.get(f"{metrics.LAG.name}/{stage}/{partition}") or record.get(metrics.LAG.name)
        rows.append(
            PartitionRow(
                stage=stage,
                partition=partition,
                offset=_total([record], metrics.OFFSET),
                snapshot_offset=int(saved) if saved is not None else None,
                messages=_total([record], metrics.MESSAGES),
                lag=int(lag) if lag is not None else None,
                messages_per_s=_number(record, metrics.RATE),
                p50_ms=_number(record, metrics.LATENCY_P50),
                p99_ms=_number(record, metrics.LATENCY_P99),
            )
        )
    return rows


def service_of(record: Record) -> str:
    """Which service wrote a record."""
    return record.get(metrics.SERVICE.name, "")


def line(now: Overview, before: Overview, seconds: float) -> str:
    """Counts on one line of about 80 characters; the rate is that of the `seconds` since `before`."""
    rate = max(0, now.messages - before.messages) / seconds if seconds > 0 else 0.0
    parts = [
        f"{now.messages:,} in",
        f"{rate:,.0f}/s",
        f"{now.results:,} out",
        f"{now.dead_letters:,} dead letters",
        f"lag {now.lag:,}",
    ]
    if now.p50_ms is not None and now.p99_ms is not None:
        parts.append(f"p50 {now.p50_ms:,.0f} ms  p99 {now.p99_ms:,.0f} ms")
    return "  ".join(parts)


def _total(records: Iterable[Record], figure: Figure) -> int:
    return sum(int(float(record.get(figure.name) or 0)) for record in records)


def _number(record: Record, figure: Figure) -> float | None:
    text = record.get(figure.name)
    return float(text) if text else None


def _worst(records: list[Record], figure: Figure) -> float | None:
    found = [float(record[figure.name]) for record in records if record.get(figure.name)]
    return max(found, default=None)
