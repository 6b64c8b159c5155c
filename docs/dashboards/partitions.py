"""Partitions of the stages that one chooses, each for itself: who holds the others up."""

from docs.dashboards.grafana import Dashboard, Panel, Query, Row
from docs.dashboards.queries import FOLDED, lag_seconds, quantile, slope


def _per_partition(title: str, about: str, unit: str, each: str, *, empty: str = "") -> Panel:
    query = Query(f"max by (stage, partition) ({each})", "{{stage}}/{{partition}}")
    return Panel(title, about, unit, (query,), empty=empty)


_PARTITIONS = Row(
    "Who holds it up?",
    (
        Panel(
            "Partitions",
            "Sort by a column: most lag, furthest behind in event time, oldest snapshot.",
            "",
            (
                Query(
                    "sum by (stage, partition) (bettong_partition_lag_records{${stages}})",
                    "lag",
                    "count:records",
                ),
                Query(lag_seconds("${stages}", "stage", "partition"), "lag in time", "s"),
                Query(
                    slope("bettong_partition_messages_total{${stages}}", "stage", "partition"),
                    "folded",
                    "count:messages/s",
                ),
                Query(quantile(0.99, f"{FOLDED}{{${{stages}}}}", "stage", "partition"), "p99", "s"),
                Query(
                    "max by (stage, partition)"
                    " (time() - (bettong_partition_watermark_timestamp_seconds{${stages}} > 0))",
                    "event time behind",
                    "s",
                ),
                Query("sum by (stage, partition) (bettong_partition_keys{${stages}})", "keys", "count:keys"),
                Query(
                    "max by (stage, partition) (bettong_partition_offset{${stages}})"
                    " - max by (stage, partition) (bettong_partition_snapshot_offset{${stages}})",
                    "not in a snapshot",
                    "count:records",
                ),
                Query("max by (stage, partition) (bettong_partition_cpus{${stages}})", "CPUs", "none"),
                Query(
                    "max by (stage, partition) (bettong_partition_cpus_exclusive{${stages}})",
                    "CPUs its own",
                    "bool_yes_no",
                ),
            ),
            kind="table",
            columns=24,
        ),
        _per_partition(
            "Lag", "Records that wait.", "count:records", "bettong_partition_lag_records{${stages}}"
        ),
        _per_partition(
            "Folded",
            "One far above the others: skewed keys.",
            "count:messages/s",
            "clamp_min(deriv(bettong_partition_messages_total{${stages}}[$__rate_interval]), 0)",
        ),
        _per_partition(
            "Event time behind the clock",
            "Windows, timers and states of a partition wait for the origin that has come least far.",
            "s",
            "time() - (bettong_partition_watermark_timestamp_seconds{${stages}} > 0)",
        ),
        _per_partition(
            "Overdue",
            "A timer, the end of a state or a watermark that was due, by the clock, and has not been folded yet.",
            "s",
            "time() - bettong_partition_due_timestamp_seconds{${stages}} > 0",
            empty="nothing",
        ),
        _per_partition("Keys", "With a state.", "count:keys", "bettong_partition_keys{${stages}}"),
        _per_partition(
            "Keys that end",
            "By delete_when=, by windows and joins that are over, and by their time to live.",
            "count:keys/s",
            "clamp_min(deriv(bettong_partition_deleted_keys_total{${stages}}[$__rate_interval]), 0)"
            " + clamp_min(deriv(bettong_partition_expired_keys_total{${stages}}[$__rate_interval]), 0)",
        ),
        _per_partition(
            "Not in a snapshot",
            "Records that a new owner would fold again.",
            "count:records",
            "bettong_partition_offset{${stages}} - bettong_partition_snapshot_offset{${stages}}",
        ),
    ),
)

PARTITIONS = Dashboard(
    "partitions",
    "Bettong: partitions",
    (_PARTITIONS,),
    {"stage": "label_values(bettong_partition_offset{${release}}, stage)"},
)
