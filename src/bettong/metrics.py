"""Every live metric that services write and people read, by name; and by the name that Prometheus knows it by.

A service writes one flat record of metrics under its instance name (see `edges.redis_store`), with a time to
live, so that the record of a dead instance goes by itself. The processor writes one record a partition.
"""

from collections.abc import Mapping

from bettong import queue_metrics
from bettong.identifiers import TopicPartition
from bettong.latency_parts import PARTS
from bettong.metric_series import Metric, Scope, Series

SERVICE = Metric("service", "text", "which service wrote the record: sender, processor or receiver")
STATE = Metric("state", "text", "starting, waiting (for Kafka or Redis), standby, running or stopping")
SINCE = Metric("since", "Unix s", "when the service entered that state")
DETAIL = Metric("detail", "text", "what it waits for, when it waits")
MESSAGES = Metric("messages", "messages", "taken in (sender), folded (processor), delivered (receiver)")
FRAMES = Metric("frames", "frames", "taken in, folded, delivered")
SESSIONS = Metric("sessions", "sessions", "clients connected to a sender, subscribers of a receiver")
BUFFERED = Metric("buffered", "bytes", "in flight to Kafka in a sender")
DEAD_LETTERS = Metric(
    "dead_letters",
    "messages",
    "that could not be processed: refused by a source (sender); dead letters put out, those of senders among them"
    " (partition); in the topic for dead letters (receiver). One dead letter is in the metrics of all that it has"
    " passed, so these are not to be added up",
)
DEAD_LETTER_LAST = Metric(
    "dead_letter_last", "text", "the last one: computation, reason, origin, sequence, index"
)
SKIPPED = Metric(
    "skipped",
    "messages",
    'that could not be processed, of computations, sources and sinks with on_error="skip"',
)
REFUSED = Metric(
    "refused", "sessions", "that a sender ended with a refusal: a wrong frame, a name that is taken, no room"
)
DUPLICATES = Metric("duplicates", "frames", "skipped: seen before")
GAPS = Metric("gaps", "frames", "skipped: an earlier one was lost on its way")
GAP = Metric(
    "gap",
    "text",
    "a gap that stays: the frame that is skipped, and the one that did not come before it (BETTONG_GAP_ALARM_S)",
)
GAP_S = Metric("gap_s", "s", "how long that frame has been waiting")
UNREADABLE = Metric(
    "unreadable", "records", "skipped by a receiver: no frame, or not of the sink that they lie in"
)
HELD = Metric(
    "held_s",
    "s",
    "back-pressure: for how long it has held up the one before it, since the process began, or the task that folds"
    " the partition. A sender took no frames, for it had no room (BETTONG_SENDER_BUFFER_BYTES_MAX);"
    " `held_s/SOURCE`: none of one source, whose frames wait to be decoded. A partition (resident) waited for Kafka"
    " to take output. A receiver waited for files and Redis, `held_s/SINK` for the sink's destination, to store"
    " results, or to be there again",
)
TICKS = Metric(
    "ticks",
    "records",
    "that brought partitions the watermark, for no frame did: of a sender's sources",
)
WATERMARK_LAG = Metric(
    "watermark_lag_s",
    "s",
    "`watermark_lag_s/SOURCE`: how far event time is behind the clock, by the slowest of a sender's clients that is not"
    " idle; of sources whose stage goes by event time",
)
RESULTS = Metric("results", "messages", "put out by a stage's partition")
OFFSET = Metric("offset", "offset", "the next record that a partition folds")
KEYS = Metric("keys", "keys", "with a state in a partition")
CREATED = Metric(
    "created", "keys", "whose states have begun, in a partition: that live, or were deleted, or expired"
)
DELETED = Metric(
    "deleted",
    "keys",
    "that delete_when= has ended, or windows and joins forgot, in a partition",
)
EXPIRED = Metric("expired", "keys", "whose states have ended by their time to live, in a partition")
LATE = Metric(
    "late",
    "messages",
    "that came when all of their windows were over, or when nothing was kept that a join could pair them with, in a"
    " partition",
)
PARTLY_LATE = Metric(
    "partly_late",
    "messages",
    "that came when some of their windows were over and others open, in a partition",
)
ACCOUNTS = Metric(
    "accounts",
    "JSON",
    "what has become of the messages of each computation of a partition: see `bettong status --accounts`",
)
TIMES = Metric(
    "times",
    "JSON",
    "how long each computation of a partition is at work: see `bettong status --computations`. What the worker itself"
    " does with frames has no name",
)
HOT_KEYS = Metric(
    "hot_keys",
    "JSON",
    "the keys that have most of a partition's messages of late, by a sample: of about how many messages; of"
    " three keys, the heaviest first, the share that they have at most, and at least",
)
HOT_KEY_SHARE = Metric(
    "hot_key_share",
    "0 to 1",
    "of a partition's messages of late, by a sample: what the first of these has at most",
)
DUE = Metric(
    "due_ns",
    "Unix ns",
    "the log clock at which something is due in a partition although no record comes: a timer, the end of a state, a"
    " watermark. Nothing: no value",
)
WATERMARK = Metric(
    "watermark_ns",
    "Unix ns",
    "how far event time has come in a partition, when it folded its last record; 0 while unknown, and where nothing"
    " goes by event time",
)
WATERMARK_HELD_BY = Metric(
    "watermark_held_by",
    "text",
    "the origin of a partition that has come least far: a client's stream, or a partition of the stage before",
)
EVENT_PROGRESS = Metric(
    "event_progress",
    "JSON",
    "what event time waits for in a partition, and what waits for it: of each input the origin that has come least far,"
    " of each computation its first window, join or timer that is due: see `bettong status --watermarks`",
)
REFERENCES = Metric(
    "references",
    "text",
    "tables of `join_reference` that the processor cannot load again: since when, and why. They stay as they were",
)
REFERENCE_AGE = Metric(
    "reference_age_s",
    "s",
    "`reference_age_s/JOIN`: since a table of `join_reference` was loaded, or the processor began to fold; of tables"
    " with reload_every=, and of others while that fails",
)
FAULT = Metric(
    "fault",
    "text",
    "what holds a partition up: the record at which workers died, or that is folded for seconds already",
)
LEFT_OUT = Metric(
    "left_out",
    "text",
    "the last message, or timer, of a partition that is left out because it killed workers: where it lies, and how they"
    " died; for 10 minutes, or until the next one",
)
LAG = Metric(
    "lag",
    "records",
    "in the log, not yet folded or delivered; `lag/NAME`: of a sink's destination, of the topic that a source reads,"
    " of a stage's partition, without what came since its worker last reported",
)
STALLED = Metric(
    "stalled_s",
    "s",
    "for how long a stage's partition, `stalled_s/STAGE/PARTITION`, has folded nothing although records wait; reported"
    " from 3 s on",
)
RATE = Metric("messages_per_s", "messages/s", "folded by a partition of the resident schedule, of late")
BATCH = Metric("batch", "batch", "the last micro-batch")
BATCH_MS = Metric("batch_ms", "ms", "how long the last micro-batch took")
SNAPSHOT_OFFSET = Metric(
    "snapshot_offset",
    "offset",
    "of the newest snapshot of a partition: written when one is saved, and when the processor starts",
)
SNAPSHOT_SAVED = Metric(
    "snapshot_saved",
    "Unix s",
    "when the newest snapshot of a partition was saved, by the clock of its worker",
)
SNAPSHOT_BYTES = Metric(
    "snapshot_bytes",
    "bytes",
    "that saving that snapshot wrote: the states that had changed, and some of the others",
)
SNAPSHOT_MS = Metric(
    "snapshot_ms", "ms", "how long saving that snapshot took: making it, and until the store had it"
)
SNAPSHOT_PAUSE_MS = Metric(
    "snapshot_pause_ms",
    "ms",
    "of that, for how long nothing of the partition was folded: making it (resident); 0 under micro-batch, which makes"
    " one with each batch and copies some to the store",
)
SNAPSHOT_FAULT = Metric(
    "snapshot_fault",
    "text",
    "why the store has not taken the newest snapshot of a partition; it is tried again",
)
STATE_BYTES = Metric(
    "state_bytes",
    "bytes",
    "of a partition's states as they are saved: all that a recovery reads, the newest snapshot and those that it goes"
    " on from. 0 before the first",
)
CPUS = Metric("cpus", "CPUs", "that the process may use which folds a partition")
EXCLUSIVE = Metric(
    "exclusive", "0 or 1", "whether these are its own, where BETTONG_EXCLUSIVE_CPUS promises so"
)
# Of a receiver. Long enough for a p99 of a few results a second, short enough that a burst is over when it is over.
LATENCY_WINDOW_S = 60
_LATENCY = (
    f"client's send time to delivery, of what was delivered in the last {LATENCY_WINDOW_S} s; of a partition"
    " (resident), the sender's stamp to durable output, of late"
)
LATENCY_P50 = Metric("latency_p50_ms", "ms", f"{_LATENCY}: half are faster")
LATENCY_P99 = Metric("latency_p99_ms", "ms", f"{_LATENCY}: 99 of 100 are faster")
LATENCY_MAX = Metric("latency_max_ms", "ms", f"{_LATENCY}: slowest")
LATENCY = Metric(
    "latency",
    "counts",
    "the same latencies since the process began, or the task that folds the partition: how many in each bucket of"
    " `bettong.latency`, and their sum in s. A receiver counts messages, a partition the frames that it puts out",
)
LATENCY_PERCENTILES = Metric(
    "latency_percentiles",
    "JSON",
    f"`latency_percentiles/SINK`: of what was delivered in the last {LATENCY_WINDOW_S} s: messages, and in ms what each"
    " of `bettong.latency_percentiles.SHARES` of them stay within",
)
LATENCY_PART = Metric(
    "latency_part",
    "counts",
    f"`latency_part/SINK/PART`: the same for each part of a receiver's latency: {', '.join(PARTS)}. The sums of the"
    " parts add up to that of the whole, but for results of an older version, of which no parts are known",
)
LATENCY_PARTS = Metric(
    "latency_parts",
    "JSON",
    f"`latency_parts/SINK`: of what was delivered in the last {LATENCY_WINDOW_S} s: messages, and of each part"
    " in that order the sum in s, the p99 in ms, and all percentiles in ms",
)
CERTIFICATE_END = Metric(
    "certificate_end", "Unix s", "when the first one of a service's chain of certificates ends"
)
DROPPED_SPANS = Metric(
    "dropped_spans", "spans", "of traces, not exported by a sender or receiver; workers log theirs"
)
# Of these `bettong.latency` knows the text.
HISTOGRAMS = (LATENCY, LATENCY_PART)

# Beside the metrics of a live record: the id of the process that wrote it, on its machine; after how many seconds it
# goes unless it is written again; and, of one that was read, how many seconds old it is, by Redis' own clock.
PID = "pid"
TTL_S = "ttl_s"
AGE_S = "age_s"

# Beside GAP and LEFT_OUT in the record of a partition, by Redis' own clock: since when they say so, Unix s, and from
# what age on a gap is an alarm; and the furthest offset at which gaps were said. Who reads records gets GAP and GAP_S
# from then on, and LEFT_OUT while it is new.
GAP_SINCE_S = f"{GAP.name}_since_s"
GAP_ALARM_S = "gap_alarm_s"
GAP_OFFSET = "gap_offset"
LEFT_OUT_SINCE_S = f"{LEFT_OUT.name}_since_s"
# An operator who is called finds it; and who asks later asks the dead letters.
LEFT_OUT_S_MAX = 600

ALL = tuple(
    value
    for module in (globals(), vars(queue_metrics))
    for value in module.values()
    if isinstance(value, Metric)
)

_SINK = ("sink",)

SERIES = (
    Series("bettong_state_entered_timestamp_seconds", SINCE, Scope.SERVICE),
    Series("bettong_certificate_end_timestamp_seconds", CERTIFICATE_END, Scope.SERVICE),
    Series("bettong_trace_dropped_spans_total", DROPPED_SPANS, Scope.SERVICE),
    Series("bettong_sender_messages_total", MESSAGES, Scope.SENDER),
    Series("bettong_sender_frames_total", FRAMES, Scope.SENDER),
    Series("bettong_sender_sessions", SESSIONS, Scope.SENDER),
    Series("bettong_sender_refused_sessions_total", REFUSED, Scope.SENDER),
    Series("bettong_sender_buffered_bytes", BUFFERED, Scope.SENDER),
    Series("bettong_sender_held_seconds_total", HELD, Scope.SENDER),
    Series("bettong_sender_source_held_seconds_total", HELD, Scope.SENDER, ("source",)),
    Series("bettong_sender_dead_letters_total", DEAD_LETTERS, Scope.SENDER),
    Series("bettong_sender_skipped_messages_total", SKIPPED, Scope.SENDER),
    Series("bettong_sender_topic_lag_records", LAG, Scope.SENDER, ("source",)),
    Series("bettong_sender_ticks_total", TICKS, Scope.SENDER),
    Series("bettong_sender_watermark_lag_seconds", WATERMARK_LAG, Scope.SENDER, ("source",)),
    Series("bettong_processor_lag_records", LAG, Scope.PROCESSOR),
    Series("bettong_processor_batch", BATCH, Scope.PROCESSOR),
    Series("bettong_processor_batch_duration_seconds", BATCH_MS, Scope.PROCESSOR, per=1000),
    Series("bettong_processor_reference_age_seconds", REFERENCE_AGE, Scope.PROCESSOR, ("join",)),
    Series("bettong_partition_lag_records", LAG, Scope.PROCESSOR, ("stage", "partition")),
    Series("bettong_partition_stalled_seconds", STALLED, Scope.PROCESSOR, ("stage", "partition")),
    Series("bettong_partition_messages_total", MESSAGES, Scope.PARTITION),
    Series("bettong_partition_frames_total", FRAMES, Scope.PARTITION),
    Series("bettong_partition_results_total", RESULTS, Scope.PARTITION),
    Series("bettong_partition_dead_letters_total", DEAD_LETTERS, Scope.PARTITION),
    Series("bettong_partition_skipped_messages_total", SKIPPED, Scope.PARTITION),
    Series("bettong_partition_duplicate_frames_total", DUPLICATES, Scope.PARTITION),
    Series("bettong_partition_gap_frames_total", GAPS, Scope.PARTITION),
    Series("bettong_partition_gap_seconds", GAP_S, Scope.PARTITION),
    Series("bettong_partition_keys", KEYS, Scope.PARTITION),
    Series("bettong_partition_created_keys_total", CREATED, Scope.PARTITION),
    Series("bettong_partition_deleted_keys_total", DELETED, Scope.PARTITION),
    Series("bettong_partition_expired_keys_total", EXPIRED, Scope.PARTITION),
    Series("bettong_partition_late_messages_total", LATE, Scope.PARTITION),
    Series("bettong_partition_partly_late_messages_total", PARTLY_LATE, Scope.PARTITION),
    Series("bettong_partition_hot_key_ratio", HOT_KEY_SHARE, Scope.PARTITION),
    Series("bettong_partition_due_timestamp_seconds", DUE, Scope.PARTITION, per=1e9),
    Series("bettong_partition_watermark_timestamp_seconds", WATERMARK, Scope.PARTITION, per=1e9),
    Series("bettong_partition_offset", OFFSET, Scope.PARTITION),
    Series("bettong_partition_snapshot_offset", SNAPSHOT_OFFSET, Scope.PARTITION),
    Series("bettong_partition_snapshot_timestamp_seconds", SNAPSHOT_SAVED, Scope.PARTITION),
    Series("bettong_partition_snapshot_bytes", SNAPSHOT_BYTES, Scope.PARTITION),
    Series("bettong_partition_snapshot_duration_seconds", SNAPSHOT_MS, Scope.PARTITION, per=1000),
    Series("bettong_partition_snapshot_pause_seconds", SNAPSHOT_PAUSE_MS, Scope.PARTITION, per=1000),
    Series("bettong_partition_state_bytes", STATE_BYTES, Scope.PARTITION),
    Series("bettong_partition_messages_per_second", RATE, Scope.PARTITION),
    Series("bettong_partition_held_seconds_total", HELD, Scope.PARTITION),
    Series("bettong_partition_cpus", CPUS, Scope.PARTITION),
    Series("bettong_partition_cpus_exclusive", EXCLUSIVE, Scope.PARTITION),
    Series("bettong_partition_latency_seconds", LATENCY, Scope.PARTITION),
    Series(
        "bettong_computation_messages_total",
        ACCOUNTS,
        Scope.COMPUTATION,
        part="taken",
        says="messages that came to a computation or output",
    ),
    Series(
        "bettong_computation_results_total",
        ACCOUNTS,
        Scope.COMPUTATION,
        part="given",
        says="messages that a computation or output gave",
    ),
    Series(
        "bettong_computation_busy_seconds_total",
        TIMES,
        Scope.COMPUTATION,
        part="busy_s",
        says="how long a computation or output was at work; without a name: what workers do with frames themselves",
    ),
    Series("bettong_receiver_messages_total", MESSAGES, Scope.RECEIVER, _SINK),
    Series("bettong_receiver_frames_total", FRAMES, Scope.RECEIVER),
    Series("bettong_receiver_dead_letters_total", DEAD_LETTERS, Scope.RECEIVER),
    Series("bettong_receiver_skipped_messages_total", SKIPPED, Scope.RECEIVER),
    Series("bettong_receiver_duplicate_frames_total", DUPLICATES, Scope.RECEIVER),
    Series("bettong_receiver_gap_frames_total", GAPS, Scope.RECEIVER),
    Series("bettong_receiver_unreadable_records_total", UNREADABLE, Scope.RECEIVER),
    Series("bettong_receiver_subscribers", SESSIONS, Scope.RECEIVER),
    Series("bettong_receiver_lag_records", LAG, Scope.RECEIVER),
    Series("bettong_receiver_destination_lag_records", LAG, Scope.RECEIVER, _SINK),
    Series("bettong_receiver_held_seconds_total", HELD, Scope.RECEIVER),
    Series("bettong_receiver_destination_held_seconds_total", HELD, Scope.RECEIVER, _SINK),
    Series("bettong_receiver_latency_seconds", LATENCY, Scope.RECEIVER),
    Series("bettong_receiver_sink_latency_seconds", LATENCY, Scope.RECEIVER, _SINK),
    Series("bettong_receiver_latency_part_seconds", LATENCY_PART, Scope.RECEIVER, ("sink", "part")),
    *queue_metrics.SERIES,
)

STANDBY = "standby"
STATES = ("starting", "waiting", STANDBY, "running", "stopping")


def lags(
    ends: Mapping[TopicPartition, int], offsets: Mapping[TopicPartition, int], names: Mapping[str, str]
) -> dict[str, int]:
    """LAG of all, and of each partition as `lag/NAME/PARTITION`; `names`: of each topic. See `lag`."""
    return {LAG.name: lag(ends, offsets)} | {
        f"{LAG.name}/{names[topic]}/{partition}": lag(ends, {TopicPartition(topic, partition): offset})
        for (topic, partition), offset in offsets.items()
        if topic in names
    }


def lag(ends: Mapping[TopicPartition, int], offsets: Mapping[TopicPartition, int]) -> int:
    """LAG, from where logs end and the next offset of each (topic, partition) that is looked at.

    A log that ends before that, for it was asked earlier, or of which no end is known, adds nothing.
    """
    return sum(max(0, ends.get(partition, offset) - offset) for partition, offset in offsets.items())
