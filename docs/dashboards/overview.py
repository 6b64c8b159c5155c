"""The overview: the questions that an operator has, in the order in which they come."""

from docs.dashboards.grafana import Dashboard, Panel, Query, Row
from docs.dashboards.queries import DELIVERED, FOLDED, lag_seconds, quantile, slope

_ALIVE = Row(
    "Is it alive?",
    (
        Panel(
            "Services",
            "How many of each service are in which state. All but a standby should be running.",
            "count:instances",
            (Query("count by (service, state) (bettong_state{${release}} == 1)", "{{service}}: {{state}}"),),
            kind="stat",
        ),
        Panel(
            "What needs a person",
            "Alerts that fire. What each means and what to do: docs/operations.md, Alerts.",
            "count:alerts",
            (
                Query(
                    'count by (alertname, severity) (ALERTS{${release},alertname=~"Bettong.*",alertstate="firing"})',
                    "{{alertname}} ({{severity}})",
                ),
            ),
            kind="stat",
            empty="none",
        ),
        Panel(
            "Messages in and out",
            "Taken in by senders, and delivered to sinks. One message may give several results, or none.",
            "count:messages/s",
            (
                Query("sum(rate(bettong_sender_messages_total{${release}}[$__rate_interval]))", "in"),
                Query(
                    "sum(rate(bettong_receiver_latency_seconds_count{${release}}[$__rate_interval]))", "out"
                ),
            ),
        ),
        Panel(
            "From client to delivery",
            "A client's send time to delivery. A quantile lies within its bucket: see docs/metrics.md.",
            "s",
            (
                Query(quantile(0.5, DELIVERED), "p50"),
                Query(quantile(0.99, DELIVERED), "p99"),
                Query(quantile(0.999, DELIVERED), "p99.9"),
            ),
        ),
        Panel(
            "Lag",
            "Records that wait: to be read by a source, folded by stages, delivered to sinks.",
            "count:records",
            (
                Query(
                    "sum by (source) (bettong_sender_topic_lag_records{${release}})", "to read: {{source}}"
                ),
                Query("sum(bettong_processor_lag_records{${release}})", "to fold"),
                Query(
                    "sum by (sink) (bettong_receiver_destination_lag_records{${release}})",
                    "to deliver: {{sink}}",
                ),
            ),
        ),
        Panel(
            "Lag in seconds",
            "How long what waits for a stage takes, as fast as it folds now. Endless while it stands still.",
            "s",
            (Query(lag_seconds("${release}", "stage"), "{{stage}}"),),
        ),
    ),
)
_SLOW = Row(
    "Where is it slow?",
    (
        Panel(
            "Folded",
            "Messages that each stage folds.",
            "count:messages/s",
            (Query(slope("bettong_partition_messages_total{${release}}", "stage"), "{{stage}}"),),
        ),
        Panel(
            "From sender to output, p99",
            "The sender's stamp to durable output of a stage, resident schedule.",
            "s",
            (Query(quantile(0.99, f"{FOLDED}{{${{release}}}}", "stage"), "{{stage}}"),),
        ),
        Panel(
            "From client to delivery by sink, p99",
            "The slowest sink holds up its own messages alone.",
            "s",
            (
                Query(
                    quantile(0.99, "bettong_receiver_sink_latency_seconds_bucket{${release}}", "sink"),
                    "{{sink}}",
                ),
            ),
        ),
    ),
)
_HELD = Row(
    "Who holds it up?",
    (
        Panel(
            "Partitions with most lag",
            "Records that wait. More of them: the dashboard of partitions.",
            "count:records",
            (
                Query(
                    "topk(5, sum by (stage, partition) (bettong_partition_lag_records{${release}}))",
                    "{{stage}}/{{partition}}",
                ),
            ),
        ),
        Panel(
            "Partitions that wait",
            "That fold nothing although records wait, and that wait for a lost frame; empty when none does.",
            "s",
            (
                Query(
                    "max by (stage, partition) (bettong_partition_stalled_seconds{${release}})",
                    "{{stage}}/{{partition}} stands still",
                ),
                Query(
                    "max by (stage, partition) (bettong_partition_gap_seconds{${release}})",
                    "{{stage}}/{{partition}}: a lost frame",
                ),
            ),
            empty="none",
        ),
        Panel(
            "Event time behind the clock",
            "By the slowest client of a source, and the partition of a stage that has come least far. Which origin "
            "holds it: `bettong status --partitions`.",
            "s",
            (
                Query(
                    "max by (source) (bettong_sender_watermark_lag_seconds{${release}})", "source {{source}}"
                ),
                Query(
                    "max by (stage) (time() - (bettong_partition_watermark_timestamp_seconds{${release}} > 0))",
                    "stage {{stage}}",
                ),
            ),
        ),
    ),
)
_LOST = Row(
    "Is anything lost?",
    (
        Panel(
            "Late",
            "Too late for all of their windows, or for what a join kept; partly late: for some of their windows. "
            "Whether all adds up: `bettong status --accounts`.",
            "count:messages/s",
            (
                Query(slope("bettong_partition_late_messages_total{${release}}", "stage"), "{{stage}}: late"),
                Query(
                    slope("bettong_partition_partly_late_messages_total{${release}}", "stage"),
                    "{{stage}}: partly late",
                ),
            ),
        ),
        Panel(
            "Skipped messages",
            'That could not be processed, where on_error="skip" says so.',
            "count:messages/s",
            (
                Query(
                    "sum(rate(bettong_sender_skipped_messages_total{${release}}[$__rate_interval]))",
                    "senders",
                ),
                Query(
                    slope("bettong_partition_skipped_messages_total{${release}}", "stage"), "stage {{stage}}"
                ),
                Query(slope("bettong_receiver_skipped_messages_total{${release}}"), "receiver"),
            ),
        ),
        Panel(
            "Skipped frames",
            "Duplicates were seen before; at a gap an earlier frame is missing, and is sent again. Unreadable records "
            "are no frames of ours: somebody else writes into a topic.",
            "count:frames/s",
            (
                Query(
                    slope("bettong_partition_duplicate_frames_total{${release}}", "stage"),
                    "{{stage}}: duplicates",
                ),
                Query(slope("bettong_partition_gap_frames_total{${release}}", "stage"), "{{stage}}: gaps"),
                Query(slope("bettong_receiver_unreadable_records_total{${release}}"), "unreadable"),
            ),
        ),
    ),
)
_WRONG = Row(
    "What went wrong?",
    (
        Panel(
            "Dead letters",
            "New ones of sources and of stages, and all that come into the topic. Which: `bettong dead-letters`.",
            "count:messages/s",
            (
                Query(
                    "sum(rate(bettong_sender_dead_letters_total{${release}}[$__rate_interval]))", "of sources"
                ),
                Query(slope("bettong_partition_dead_letters_total{${release}}", "stage"), "stage {{stage}}"),
                Query(slope("bettong_receiver_dead_letters_total{${release}}"), "in the topic"),
            ),
        ),
        Panel(
            "Changes of state in 15 minutes",
            "A start is two or three. Many: a service starts again and again.",
            "count:changes",
            (
                Query(
                    "max by (service) (changes(bettong_state_entered_timestamp_seconds{${release}}[15m]))",
                    "{{service}}",
                ),
            ),
        ),
        Panel(
            "Heartbeat",
            "Since Redis took the record of a service. It grows while Redis is away.",
            "s",
            (Query("max by (service) (bettong_heartbeat_age_seconds{${release}})", "{{service}}"),),
        ),
    ),
)

OVERVIEW = Dashboard("overview", "Bettong: overview", (_ALIVE, _SLOW, _HELD, _LOST, _WRONG), {})
