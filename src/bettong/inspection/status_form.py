"""The output of `bettong status --json`: a form that scripts may rely on, described field by field.

Within a VERSION fields are added and never removed, renamed, or given another meaning or unit: a reader ignores names
that it does not know. Unknown values are null, never a wrong number. docs/status-json.md and docs/status.schema.json
are rendered from here. Pure.
"""

from __future__ import annotations

from typing import Final, Literal

from bettong.inspection.computations import ComputationLine
from bettong.inspection.deployment import Inspection
from bettong.inspection.described_form import Described, unit_field
from bettong.inspection.latency_parts import SinkParts
from bettong.inspection.open_windows import WINDOWS_MAX, input_watermarks, open_windows
from bettong.inspection.overview import Overview, StageSummary
from bettong.inspection.partition_status import (
    OF_LATE,
    HotKeyStatus,
    PartitionStatus,
    SnapshotStatus,
    partition_status,
)
from bettong.inspection.queue_form import (
    ClientStatus,
    QueueStatus,
    SubscriberStatus,
    client_status,
    queue_status,
    subscriber_status,
)
from bettong.inspection.queues import Queues
from bettong.inspection.services import ServiceRow
from bettong.inspection.unmeasured import MeasureKind
from bettong.inspection.watermark_form import (
    InputWatermarkStatus,
    OpenWindowStatus,
    input_watermark_status,
    open_window_status,
)
from bettong.latency_parts import PARTS as LATENCY_PARTS
from bettong.metrics import LATENCY_WINDOW_S
from bettong.queued import NAMED_MAX

VERSION: Final = 1


class ServiceStatus(Described):
    """One process of a service, or the service where it has none."""

    name: str = unit_field("name", "The instance; Kafka and Redis too, of a suite on this machine.")
    state: str = unit_field(
        "word",
        "running, standby, starting, waiting, stopping; silent (its record is old, or it does not answer), down,"
        " given up (it is not started again), unknown (Redis is away).",
    )
    since_unix_s: float | None = unit_field("Unix s", "When it entered that state; null while unknown.")
    reason: str = unit_field(
        "text", "What it waits for, how it died, what to do; empty when nothing is wrong."
    )
    pid: int | None = unit_field("number", "Its process on this machine; null elsewhere.")
    restarts: int | None = unit_field("restarts", "Since the suite began; null elsewhere.")


class TotalStatus(Described):
    """The whole application."""

    messages_in: int = unit_field("messages", "Received, since the start of each sender.")
    results_out: int = unit_field("messages", "Delivered to sinks.")
    lag_records: int | None = unit_field(
        "records",
        "In the log, not yet folded or delivered, without what came since workers last reported; null while a part of"
        " it is unknown.",
    )
    latency_p50_ms: float | None = unit_field(
        "ms",
        f"Client's send time to delivery, the median of the last {LATENCY_WINDOW_S} s; null without any.",
    )
    latency_p99_ms: float | None = unit_field("ms", "The same: 99 of 100 are faster.")
    dead_letters: int = unit_field("messages", "That could not be processed.")
    dead_letter_last: str = unit_field(
        "text", "The last one: computation, reason, origin; empty without any."
    )
    skipped: int = unit_field("messages", 'That could not be processed, with on_error="skip".')


class StageStatus(Described):
    """All partitions of a stage together."""

    stage: str = unit_field("name", "The stage.")
    partitions: int = unit_field("partitions", "How many it has.")
    messages: int = unit_field("messages", "Folded.")
    results: int = unit_field("messages", "Emitted.")
    dead_letters: int = unit_field(
        "messages", "Emitted as dead letters, including those that senders refused."
    )
    skipped: int = unit_field("messages", 'Skipped, by on_error="skip".')
    skipped_frames: int = unit_field("frames", "Skipped as duplicates, or after a gap.")
    late: int = unit_field("messages", "Too late for all of their windows, or for their join.")
    partly_late: int = unit_field("messages", "Too late for some of their windows.")
    keys: int = unit_field("keys", "With a state.")
    state_bytes: int | None = unit_field("bytes", "Saved states; null while a partition's size is unknown.")
    lag_records: int | None = unit_field("records", "The sum over its partitions; null while one is unknown.")
    messages_per_s: float | None = unit_field("messages/s", f"Folded, {OF_LATE}.")
    latency_p50_ms: float | None = unit_field(
        "ms", f"The sender's stamp to durable output, the median of the slowest partition {OF_LATE}."
    )
    latency_p99_ms: float | None = unit_field(
        "ms", "The same: 99 of 100 are faster, of the slowest partition."
    )


class PartStatus(Described):
    """One part of the latency of a sink."""

    part: str = unit_field(
        "word", f"Which: {', '.join(LATENCY_PARTS)}; in that order. See docs/operations.md."
    )
    mean_ms: float = unit_field(
        "ms",
        "Its mean. The means of all parts add up to the mean of the latency; their p99 do not.",
    )
    share: float = unit_field("0 to 1", "Its mean, as a share of the mean of the latency.")
    p99_ms: float = unit_field("ms", "99 of 100 results take no longer here, within 1 %.")


class SinkStatus(Described):
    """The latency of one sink, and where it goes."""

    sink: str = unit_field("name", "The sink; `dead-letters` too.")
    messages: int = unit_field(
        "messages",
        f"Delivered in the last {LATENCY_WINDOW_S} s with known parts: results of an older version, and dead letters"
        " that a receiver wrote, have none.",
    )
    latency_mean_ms: float = unit_field("ms", "Client's send time to delivery, the mean of these.")
    parts: list[PartStatus] = unit_field("list", "One entry per part.")


class ComputationStatus(Described):
    """A computation or output of a stage in all partitions, or the workers' own work."""

    stage: str = unit_field("name", "The stage.")
    computation: str = unit_field(
        "name", "The computation or output; empty for the workers' own work: frames read and checked."
    )
    messages: int | None = unit_field("messages", "That it received; null for the workers' own work.")
    results: int | None = unit_field("messages", "That it emitted; null for the workers' own work.")
    busy_share: float = unit_field("cores", "How busy it was recently, over all partitions; 1: a whole core.")
    frame_p50_us: float = unit_field(
        "us", "Time of one frame there, the median of the slowest partition over about the last minute."
    )
    frame_p99_us: float = unit_field("us", "The same: 99 of 100 take less. Within 1 %, as the others.")
    frame_p999_us: float = unit_field("us", "The same: 999 of 1,000.")
    frame_p9999_us: float = unit_field("us", "The same: 9,999 of 10,000.")
    frame_max_us: float = unit_field("us", "The same: the longest.")


class StatusForm(Described):
    """The whole answer, one JSON object."""

    version: Literal[1] = unit_field("number", "Of this form; a different form has another number.")
    asked_unix_s: float = unit_field("Unix s", "When this was asked, by the clock of this machine.")
    application: str | None = unit_field("name", "The application; null when nothing runs.")
    goes_on: bool = unit_field(
        "true or false",
        "Whether all services run, all answer, and no partition stands still: exit code 0, else 7.",
    )
    unknown: list[str] = unit_field(
        "texts", "What does not answer, and what is unknown for that reason, a line each."
    )
    services: list[ServiceStatus] = unit_field("list", "One entry per service.")
    total: TotalStatus | None = unit_field("object", "The whole; null when nothing runs, or Redis is away.")
    stages: list[StageStatus] = unit_field("list", "One entry per stage.")
    partitions: list[PartitionStatus] = unit_field("list", "One entry per partition, by stage and number.")
    sinks: list[SinkStatus] = unit_field(
        "list", f"One entry per sink that has delivered something in the last {LATENCY_WINDOW_S} s, by name."
    )
    computations: list[ComputationStatus] = unit_field(
        "list", "One entry per computation and output, and one for the workers' own work, by stage."
    )
    input_watermarks: list[InputWatermarkStatus] = unit_field(
        "list", "One entry per input of a stage with event time."
    )
    open_windows: list[OpenWindowStatus] = unit_field(
        "list", f"The oldest windows that are open, joins and timers that wait, {WINDOWS_MAX} at most."
    )
    queues: list[QueueStatus] = unit_field(
        "list", "One entry per queue, in the order in which messages pass."
    )
    clients: list[ClientStatus] = unit_field("list", f"The clients with least credit, {NAMED_MAX} at most.")
    subscribers: list[SubscriberStatus] = unit_field(
        "list", f"Those that have stalled for longest, or are furthest behind, {NAMED_MAX} at most."
    )
    not_measured: list[str] = unit_field(
        "words",
        f"What BETTONG_MEASURES=off switches off, so that `sinks`, `computations`, `hot_keys` are empty: of"
        f" {', '.join(MeasureKind)}.",
    )
    gaps: list[str] = unit_field("texts", "Partitions that wait for a lost frame.")
    skews: list[str] = unit_field(
        "texts",
        "Keys that alone have twice a partition's even share of a stage's messages, and what to do.",
    )
    left_out: list[str] = unit_field("texts", "Messages that killed workers and were recently skipped.")
    reference_faults: list[str] = unit_field("texts", "Tables of join_reference that cannot be loaded again.")
    shared_cpus: list[str] = unit_field(
        "names", "Partitions that are folded on shared CPUs, where workers should have their own."
    )


# In the order in which the page describes them.
PARTS: tuple[type[Described], ...] = (
    StatusForm,
    ServiceStatus,
    TotalStatus,
    StageStatus,
    PartitionStatus,
    SnapshotStatus,
    HotKeyStatus,
    SinkStatus,
    PartStatus,
    ComputationStatus,
    InputWatermarkStatus,
    OpenWindowStatus,
    QueueStatus,
    ClientStatus,
    SubscriberStatus,
)


def status_form(found: Inspection | None, asked_unix_s: float, nothing: str = "") -> StatusForm:
    """An inspection in this form; None: nothing runs, with `nothing` as the reason."""
    overview = found.overview if found is not None else None
    waits = found.queues if found is not None else Queues()
    rows, now_ns = found.partitions if found is not None else (), int(asked_unix_s * 1e9)
    return StatusForm(
        version=VERSION,
        asked_unix_s=asked_unix_s,
        application=found.application if found is not None else None,
        goes_on=found is not None and found.goes_on,
        unknown=found.unknown if found is not None else [nothing],
        services=list(map(_service, found.services)) if found is not None else [],
        total=_total(found.overview) if found is not None and "redis" not in found.away else None,
        stages=list(map(_stage, found.stages)) if found is not None else [],
        partitions=list(map(partition_status, found.partitions)) if found is not None else [],
        sinks=list(map(_sink, overview.latency_parts)) if overview is not None else [],
        computations=list(map(_computation, found.computations)) if found is not None else [],
        input_watermarks=list(map(input_watermark_status, input_watermarks(rows, now_ns))),
        open_windows=list(map(open_window_status, open_windows(rows, now_ns))),
        queues=list(map(queue_status, waits.lines)),
        clients=[client_status(*each) for each in waits.clients],
        subscribers=[subscriber_status(*each) for each in waits.subscribers],
        not_measured=list(found.not_measured) if found is not None else [],
        gaps=list(overview.gaps) if overview is not None else [],
        skews=list(overview.skews) if overview is not None else [],
        left_out=list(overview.left_out) if overview is not None else [],
        reference_faults=list(overview.references) if overview is not None else [],
        shared_cpus=list(overview.shared) if overview is not None else [],
    )


def _service(row: ServiceRow) -> ServiceStatus:
    process = row.process
    return ServiceStatus(
        name=row.name,
        state=row.state,
        since_unix_s=row.since_s,
        reason=row.detail,
        pid=process.pid if process is not None else None,
        restarts=process.restarts if process is not None else None,
    )


def _total(found: Overview) -> TotalStatus:
    return TotalStatus(
        messages_in=found.messages,
        results_out=found.results,
        lag_records=found.lag,
        latency_p50_ms=found.p50_ms,
        latency_p99_ms=found.p99_ms,
        dead_letters=found.dead_letters,
        dead_letter_last=found.dead_letter_last,
        skipped=found.skipped,
    )


def _stage(found: StageSummary) -> StageStatus:
    return StageStatus(
        stage=found.stage,
        partitions=found.partitions,
        messages=found.messages,
        results=found.results,
        dead_letters=found.dead_letters,
        skipped=found.skipped,
        skipped_frames=found.skipped_frames,
        late=found.late,
        partly_late=found.partly_late,
        keys=found.keys,
        state_bytes=found.state_bytes,
        lag_records=found.lag,
        messages_per_s=found.messages_per_s,
        latency_p50_ms=found.p50_ms,
        latency_p99_ms=found.p99_ms,
    )


def _sink(found: SinkParts) -> SinkStatus:
    return SinkStatus(
        sink=found.sink,
        messages=found.messages,
        latency_mean_ms=found.mean_ms,
        parts=[
            PartStatus(part=row.part.value, mean_ms=row.mean_ms, share=row.share, p99_ms=row.p99_ms)
            for row in found.parts
        ],
    )


def _computation(line: ComputationLine) -> ComputationStatus:
    return ComputationStatus(
        stage=line.stage,
        computation=line.name,
        messages=line.taken,
        results=line.given,
        busy_share=line.busy_share,
        frame_p50_us=line.p50_us,
        frame_p99_us=line.p99_us,
        frame_p999_us=line.p999_us,
        frame_p9999_us=line.p9999_us,
        frame_max_us=line.max_us,
    )
