"""The live metrics of queues: what waits where, and for whom. See `bettong.metrics`."""

from bettong.metric_series import Metric, Scope, Series
from bettong.queued import NAMED_MAX

CREDITS = Metric("credits", "frames", "that clients may send to a sender at once, all of them together")
CREDITS_LEAST = Metric(
    "credits_least",
    "frames",
    "that the client may send at once that may send least; no value without a client",
)
WITHOUT_CREDIT = Metric(
    "without_credit",
    "sessions",
    "of clients that may send a sender nothing now: as many frames as they may send are on their way to Kafka, or it"
    " has no room (`held_s`)",
)
WITHOUT_CREDIT_S = Metric(
    "without_credit_s", "s", "for how long that one of them has waited that has waited longest; 0 without any"
)
CLIENTS = Metric(
    "clients",
    "JSON",
    f"the {NAMED_MAX} clients of a sender with least credit, a list each: stream, credits, frames on their way to"
    " Kafka, for how many s it has had no credit: see `bettong status --queues`",
)
DECODING = Metric("decoding", "frames", "`decoding/SOURCE`: in a sender, that wait to be decoded and split")
DECODING_BYTES = Metric(
    "decoding_bytes", "bytes", "`decoding_bytes/SOURCE`: of these, and of the one that is being decoded"
)
UNACKNOWLEDGED = Metric(
    "unacknowledged",
    "frames",
    "that were given to Kafka and have no answer yet: clients' frames (sender), output (partition, resident)",
)
READ_AHEAD = Metric(
    "read_ahead",
    "records",
    "of a partition's log, that its slot has fetched and not begun with (resident), as of when it last read. A part of"
    " `lag`: where that is large and this is 0, Kafka is slow; where both are, the worker is",
)
DELIVERING = Metric(
    "delivering",
    "frames",
    "that a receiver has handed over and that are not stored yet: to files and Redis; `delivering/SINK`: to the sink's"
    " destination",
)
SUBSCRIBERS = Metric(
    "subscribers",
    "JSON",
    f"the {NAMED_MAX} subscribers of a receiver that have stalled longest, or else are furthest behind, a list each:"
    " sink, address, for how many s what was sent to it has not been read, bytes of that, records that it has not been"
    " sent: see `bettong status --queues`",
)
STALLED_SUBSCRIBERS = Metric(
    "stalled_subscribers",
    "sessions",
    "`stalled_subscribers/SINK`: of subscribers that have not read for a second or longer",
)
SUBSCRIBER_STALLED_S = Metric(
    "subscriber_stalled_s",
    "s",
    "`subscriber_stalled_s/SINK`: for how long that subscriber has not read that has not read for longest",
)
SUBSCRIBER_BYTES = Metric(
    "subscriber_bytes", "bytes", "`subscriber_bytes/SINK`: that a receiver holds for a sink's subscribers"
)
SUBSCRIBER_LAG = Metric(
    "subscriber_lag",
    "records",
    "`subscriber_lag/SINK`: in the log, not yet sent to that subscriber that is furthest behind; no value where Kafka"
    " does not say",
)

_SOURCE, _SINK = ("source",), ("sink",)

SERIES = (
    Series("bettong_sender_credits", CREDITS, Scope.SENDER),
    Series("bettong_sender_least_credits", CREDITS_LEAST, Scope.SENDER),
    Series("bettong_sender_sessions_without_credit", WITHOUT_CREDIT, Scope.SENDER),
    Series("bettong_sender_without_credit_seconds", WITHOUT_CREDIT_S, Scope.SENDER),
    Series("bettong_sender_decoding_frames", DECODING, Scope.SENDER, _SOURCE),
    Series("bettong_sender_decoding_bytes", DECODING_BYTES, Scope.SENDER, _SOURCE),
    Series("bettong_sender_unacknowledged_frames", UNACKNOWLEDGED, Scope.SENDER),
    Series("bettong_partition_read_ahead_records", READ_AHEAD, Scope.PARTITION),
    Series("bettong_partition_unacknowledged_frames", UNACKNOWLEDGED, Scope.PARTITION),
    Series("bettong_receiver_delivering_frames", DELIVERING, Scope.RECEIVER),
    Series("bettong_receiver_destination_delivering_frames", DELIVERING, Scope.RECEIVER, _SINK),
    Series("bettong_receiver_stalled_subscribers", STALLED_SUBSCRIBERS, Scope.RECEIVER, _SINK),
    Series("bettong_receiver_subscriber_stalled_seconds", SUBSCRIBER_STALLED_S, Scope.RECEIVER, _SINK),
    Series("bettong_receiver_subscriber_bytes", SUBSCRIBER_BYTES, Scope.RECEIVER, _SINK),
    Series("bettong_receiver_subscriber_lag_records", SUBSCRIBER_LAG, Scope.RECEIVER, _SINK),
)
