"""What goes wrong, as promtool plays it: series that go on as services serve them, but for what a case changes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from bettong.latency import BOUNDS_S
from tests.kubernetes.alert_rules import DESCRIPTIONS, LABELS
from tests.kubernetes.chart import RELEASE

STEP_S = 15
STEPS = 120  # half an hour


@dataclass(frozen=True)
class Course:
    """How a series goes, a value each STEP_S, as promtool writes it: `2+3x10`."""

    name: str
    labels: Mapping[str, str]
    values: str

    def written(self) -> dict[str, str]:
        pairs = ",".join(f'{label}="{value}"' for label, value in sorted(self.labels.items()))
        return {"series": f"{self.name}{{{pairs}}}", "values": self.values}


@dataclass(frozen=True)
class Case:
    """What goes wrong: `changed`, series by name and some of their labels, goes as `values`. Then `alert` fires.

    `at`: by then. `labels` and `summary`: of the alert.
    """

    alert: str
    changed: Sequence[tuple[str, Mapping[str, str]]]
    values: str
    at: str
    summary: str
    labels: Mapping[str, str] = field(default_factory=dict)

    def of(self, good: Iterable[Course]) -> list[Course]:
        """All series, as they go then. Fails when one is to change that there is not."""
        found = list(good)
        for name, labels in self.changed:
            places = [
                place
                for place, each in enumerate(found)
                if each.name == name and labels.items() <= each.labels.items()
            ]
            assert places, f"{self.alert}: no series {name} {labels}"
            for place in places:
                found[place] = replace(found[place], values=self.values)
        return found


def courses(service: str, before: str, after: str) -> list[Course]:
    """The series of two scrapes of a service, what counts going on as it did between them, the rest as it was."""
    target = {**LABELS, "service": f"{RELEASE}-bettong-{service}"}  # of which the series' own come first
    ends = {_key(name, labels): value for _, name, labels, value in _samples(after)}
    found = []
    for kind, name, labels, value in _samples(before):
        counts = kind in {"counter", "histogram"} or name.endswith("_offset")
        slope = ends[_key(name, labels)] - value if counts else 0
        found.append(Course(name, {**target, **labels}, f"{value}{slope:+}x{STEPS}"))
    return found


def _samples(text: str) -> Iterable[tuple[str, str, dict[str, str], float]]:
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            yield family.type, sample.name, sample.labels, sample.value


def _key(name: str, labels: Mapping[str, str]) -> tuple[str, ...]:
    return name, *(f"{label}={value}" for label, value in sorted(labels.items()))


def trial(case: Case, good: Sequence[Course], severities: Mapping[str, str]) -> dict[str, Any]:
    """The alert with its labels and texts; and no other."""
    labels = {**LABELS, **case.labels, "severity": severities[case.alert]}
    annotations = {
        "summary": case.summary,
        "description": DESCRIPTIONS[case.alert],
        "runbook": f"docs/operations.md, Alerts: {case.alert}",
    }
    return {
        "name": case.alert,
        "input_series": [each.written() for each in case.of(good)],
        "alert_rule_test": [
            {
                "eval_time": case.at,
                "alertname": case.alert,
                "exp_alerts": [{"exp_labels": labels, "exp_annotations": annotations}],
            }
        ],
        "promql_expr_test": [fires(case.at, {case.alert: 1})],
    }


def fires(at: str, counts: Mapping[str, int]) -> dict[str, Any]:
    return {
        "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
        "eval_time": at,
        "exp_samples": [
            {"labels": f'{{alertname="{name}"}}', "value": count} for name, count in counts.items()
        ],
    }


# So that nothing that is wrong below is wrong enough.
LENIENT = {
    "downSeconds": 86400,
    "notRunningSeconds": 86400,
    "stateChanges": 1000,
    "heartbeatAgeSeconds": 7200,
    "certificateSeconds": 1,
    "stalledSeconds": 7200,
    "latencySeconds": 60,
    "latencyShare": 0.01,
    "lagSeconds": 7200,
    "sinkLagRecords": 1_000_000,
    "sinkHeldShare": 1.0,
    "sourceLagRecords": 1_000_000,
    "bufferShare": 1.0,
    "refusedSessions": 1000,
    "watermarkLagSeconds": 7200,
    "referenceAgeSeconds": 1_000_000,
    "snapshotAgeSeconds": 3600,
    "gapSeconds": 7200,
    "skippedFrames": 1000,
    "differenceSeconds": 86400,
    "lateShare": 0.5,
    "deadLetters": 1000,
}
ONE = {"stage": "orders", "partition": "1"}
BUCKET = "bettong_receiver_latency_seconds_bucket"


def of(service: str, **labels: str) -> dict[str, str]:
    return {"service": service, **labels}


CASES = [
    Case(
        "BettongServiceDown",
        [("bettong_state", of("processor"))],
        f"_x{STEPS}",
        "3m",
        "No processor answers Prometheus",
        of("processor"),
    ),
    Case(
        "BettongNotRunning",
        [("bettong_state", of("receiver", state="waiting"))],
        f"1x{STEPS}",
        "6m",
        "A receiver has been waiting for 300 s",
        of("receiver", state="waiting"),
    ),
    Case(
        "BettongStartsOften",
        [("bettong_state_entered_timestamp_seconds", of("sender"))],
        "0x2 60x2 120x2 180x2 240x2 300x2 360x2 420x2 480x2 540x2 600x2 660x2 720x80",
        "15m",
        "A sender has changed its state 12 times in 15 minutes",
        of("sender"),
    ),
    Case(
        "BettongHeartbeatOld",
        [("bettong_heartbeat_age_seconds", of("sender"))],
        f"0+15x{STEPS}",
        "1m",
        "Redis has had no record of a sender for 1m 0s",
        of("sender"),
    ),
    Case(
        "BettongCertificateEnds",
        [("bettong_certificate_end_timestamp_seconds", of("sender"))],
        f"600060x{STEPS}",
        "1m",
        "The certificate of a sender ends in 6d 22h 40m 0s",
        of("sender"),
    ),
    Case(
        "BettongCertificateEnds",
        [("bettong_certificate_end_timestamp_seconds", of("sender"))],
        f"30x{STEPS}",
        "1m",
        "The certificate of a sender has ended: no client connects",
        of("sender"),
    ),
    Case(
        "BettongPartitionStalled",
        [("bettong_partition_stalled_seconds", ONE)],
        f"0+15x{STEPS}",
        "2m",
        "orders/1 has folded nothing for 2m 0s although records wait",
        of("trial-bettong-processor", **ONE),
    ),
    Case(
        "BettongLatencyHigh",
        [(BUCKET, {"le": str(bound)}) for bound in BOUNDS_S if bound <= 0.5],
        f"0+700x{STEPS}",
        "12m",
        "Only 50% of the messages are delivered within 0.5 s",
    ),
    Case(
        "BettongLagHigh",
        [("bettong_partition_lag_records", ONE)],
        f"114x{STEPS}",
        "12m",
        "What waits for stage orders takes 1m 30s to fold, as fast as it has folded in the last 5 minutes",
        {"stage": "orders"},
    ),
    Case(
        "BettongLagHigh",
        [("bettong_partition_offset", {})],
        f"10x{STEPS}",
        "12m",
        "Stage orders folds nothing of what waits for it",
        {"stage": "orders"},
    ),
    Case(
        "BettongSinkBehind",
        [("bettong_receiver_destination_lag_records", {"sink": "totals"})],
        f"5000x{STEPS}",
        "12m",
        "Sink totals has been 5k records behind for 10 minutes",
        of("trial-bettong-receiver", sink="totals"),
    ),
    Case(
        "BettongSinkHolds",
        [("bettong_receiver_destination_held_seconds_total", {"sink": "totals"})],
        f"0+14.25x{STEPS}",
        "12m",
        "A receiver waits 95% of the time for the destination of sink totals to take results",
        of("trial-bettong-receiver", sink="totals"),
    ),
    Case(
        "BettongSinkHolds",
        [("bettong_receiver_held_seconds_total", {})],
        f"0+15x{STEPS}",
        "12m",
        "A receiver waits 100% of the time for files and Redis to take results",
        of("trial-bettong-receiver"),
    ),
    Case(
        "BettongSourceBehind",
        [("bettong_sender_topic_lag_records", {"source": "trades"})],
        f"5000x{STEPS}",
        "12m",
        "Source trades has been 5k records behind its topic for 10 minutes",
        of("trial-bettong-sender", source="trades"),
    ),
    Case(
        "BettongSenderFull",
        [("bettong_sender_buffered_bytes", {})],
        f"{240 * 1024 * 1024}x{STEPS}",
        "6m",
        "A sender has held 240MiB for 5 minutes that Kafka has not taken",
        of("trial-bettong-sender"),
    ),
    Case(
        "BettongSessionsRefused",
        [("bettong_sender_refused_sessions_total", {})],
        f"0+1x{STEPS}",
        "12m",
        "Senders have refused 40 sessions in 10 minutes",
    ),
    Case(
        "BettongWatermarkBehind",
        [("bettong_sender_watermark_lag_seconds", {"source": "orders"})],
        f"400x{STEPS}",
        "6m",
        "Event time of source orders is 6m 40s behind the clock",
        of("trial-bettong-sender", source="orders"),
    ),
    Case(
        "BettongReferenceTableOld",
        [("bettong_processor_reference_age_seconds", {"join": "prices"})],
        f"90000x{STEPS}",
        "1m",
        "The table of prices was loaded 1d 1h 0m 0s ago",
        of("trial-bettong-processor", join="prices"),
    ),
    Case(
        "BettongSnapshotsOld",
        [("bettong_partition_snapshot_offset", ONE)],
        f"5x{STEPS}",
        "25m",
        "No snapshot of orders/1 holds its last 405 records of 900 s ago and before",
        ONE,
    ),
    Case(  # there never was one
        "BettongSnapshotsOld",
        [("bettong_partition_snapshot_offset", ONE)],
        f"_x{STEPS}",
        "25m",
        "No snapshot of orders/1 holds its last 410 records of 900 s ago and before",
        ONE,
    ),
    Case(
        "BettongGapUnfilled",
        [("bettong_partition_gap_seconds", ONE)],
        f"0+15x{STEPS}",
        "2m",
        "orders/1 has waited for a lost frame for 2m 0s",
        of("trial-bettong-processor", **ONE),
    ),
    Case(
        "BettongResultsSkipped",
        [("bettong_receiver_gap_frames_total", {})],
        f"3+2x{STEPS}",
        "11m",
        "40 frames of results of the last 5 minutes were skipped, for one before them is missing",
    ),
    Case(
        "BettongAccountsDiffer",
        [("bettong_account_differences", {"stage": "orders"})],
        f"2x{STEPS}",
        "3m",
        "The accounts of stage orders do not add up, in 2 places",
        of("trial-bettong-processor", stage="orders"),
    ),
    Case(
        "BettongLateMessages",
        [("bettong_partition_late_messages_total", ONE)],
        f"0+74x{STEPS}",
        "22m",
        "5% of the messages of stage orders came too late for their windows or joins",
        {"stage": "orders"},
    ),
    Case(
        "BettongDeadLetters",
        [("bettong_receiver_dead_letters_total", {})],
        f"7+1x{STEPS}",
        "12m",
        "40 messages of the last 10 minutes are dead letters",
    ),
]
