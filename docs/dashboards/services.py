"""Each service, with what only it knows."""

from docs.dashboards.grafana import Dashboard, Panel, Query, Row
from docs.dashboards.queries import slope

_SENDERS = Row(
    "Senders",
    (
        Panel(
            "Sessions",
            "Clients that are connected, by sender.",
            "count:sessions",
            (Query("bettong_sender_sessions{${release}}", "{{instance}}"),),
        ),
        Panel(
            "Refused sessions",
            "A wrong frame, a name that is taken, no room: the sender's log says which.",
            "count:sessions/s",
            (
                Query(
                    "sum(rate(bettong_sender_refused_sessions_total{${release}}[$__rate_interval]))",
                    "refused",
                ),
            ),
        ),
        Panel(
            "In flight to Kafka",
            "Near BETTONG_SENDER_BUFFER_BYTES_MAX clients wait for credits: Kafka is slow or away.",
            "bytes",
            (Query("bettong_sender_buffered_bytes{${release}}", "{{instance}}"),),
        ),
        Panel(
            "Frames taken in",
            "Of clients and topics; ticks bring the watermark to partitions that get no frame.",
            "count:frames/s",
            (
                Query("sum(rate(bettong_sender_frames_total{${release}}[$__rate_interval]))", "frames"),
                Query("sum(rate(bettong_sender_ticks_total{${release}}[$__rate_interval]))", "ticks"),
            ),
        ),
        Panel(
            "Back-pressure",
            "The part of the time in which a sender took no frames for want of room, or none of a source whose frames"
            " wait to be decoded.",
            "percentunit",
            (
                Query(
                    "rate(bettong_sender_held_seconds_total{${release}}[$__rate_interval])", "{{instance}}"
                ),
                Query(
                    "rate(bettong_sender_source_held_seconds_total{${release}}[$__rate_interval])",
                    "{{instance}}: {{source}}",
                ),
            ),
        ),
        Panel(
            "Clients without credit",
            "That may send nothing now. `bettong status --queues` names them.",
            "count:clients",
            (Query("bettong_sender_sessions_without_credit{${release}}", "{{instance}}"),),
        ),
        Panel(
            "Frames that wait",
            "To be decoded, by source; and for Kafka.",
            "count:frames",
            (
                Query("sum by (source) (bettong_sender_decoding_frames{${release}})", "{{source}}"),
                Query("sum(bettong_sender_unacknowledged_frames{${release}})", "for Kafka"),
            ),
        ),
        Panel(
            "Lag of topics",
            "Records of the topics of yours that sources have not read.",
            "count:records",
            (Query("bettong_sender_topic_lag_records{${release}}", "{{source}}"),),
        ),
    ),
)
_PROCESSOR = Row(
    "Processor",
    (
        Panel(
            "Lag",
            "Records that wait to be folded, in all.",
            "count:records",
            (Query("bettong_processor_lag_records{${release}}", "{{instance}}"),),
        ),
        Panel(
            "Last micro-batch",
            "How long it took. Only under the micro-batch schedule.",
            "s",
            (Query("bettong_processor_batch_duration_seconds{${release}}", "{{instance}}"),),
            empty="resident schedule",
        ),
        Panel(
            "Age of reference tables",
            "Since a table of join_reference was loaded.",
            "s",
            (Query("max by (join) (bettong_processor_reference_age_seconds{${release}})", "{{join}}"),),
            empty="no such table",
        ),
        Panel(
            "Metrics of partitions can be read",
            "1 where Redis gave the processor the metrics of partitions; at 0 dashboards and alerts lack them.",
            "bool_yes_no",
            (Query("bettong_partition_metrics_readable{${release}}", "{{instance}}"),),
        ),
    ),
)
_HELD_BY_SINK = (
    "max by (sink) (rate(bettong_receiver_destination_held_seconds_total{${release}}[$__rate_interval]))"
)
_RECEIVER = Row(
    "Receiver",
    (
        Panel(
            "Delivered",
            "Messages by sink.",
            "count:messages/s",
            (
                Query(
                    "sum by (sink) (rate(bettong_receiver_sink_latency_seconds_count{${release}}[$__rate_interval]))",
                    "{{sink}}",
                ),
            ),
        ),
        Panel(
            "Lag of destinations",
            "Records that a sink's destination lacks. `bettong status` says what it waits for.",
            "count:records",
            (Query("max by (sink) (bettong_receiver_destination_lag_records{${release}})", "{{sink}}"),),
        ),
        Panel(
            "Back-pressure of destinations",
            "The part of the time in which a receiver waited for a sink's destination, or for files and Redis, to take"
            " results.",
            "percentunit",
            (
                Query(_HELD_BY_SINK, "{{sink}}"),
                Query(
                    "max(rate(bettong_receiver_held_seconds_total{${release}}[$__rate_interval]))",
                    "files and Redis",
                ),
            ),
        ),
        Panel(
            "Subscribers that do not read",
            "For a second or longer; those are ended that do not for a while.",
            "count:subscribers",
            (Query("sum by (sink) (bettong_receiver_stalled_subscribers{${release}})", "{{sink}}"),),
        ),
        Panel(
            "Subscribers",
            "That read results over gRPC.",
            "count:subscribers",
            (Query("bettong_receiver_subscribers{${release}}", "{{instance}}"),),
        ),
        Panel(
            "Skipped frames",
            "Duplicates were delivered before; at a gap an earlier frame is missing.",
            "count:frames/s",
            (
                Query(slope("bettong_receiver_duplicate_frames_total{${release}}"), "duplicates"),
                Query(slope("bettong_receiver_gap_frames_total{${release}}"), "gaps"),
            ),
        ),
    ),
)

SERVICES = Dashboard("services", "Bettong: services", (_SENDERS, _PROCESSOR, _RECEIVER), {})
