"""Reads the log from given offsets."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import cast

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as Position

from bettong.closing import Closing
from bettong.config.connection_settings import KafkaConnection
from bettong.edges.kafka_log.added_partitions import WAIT_MS, AddedPartitions
from bettong.edges.kafka_log.connecting import REQUEST_WAIT_MS_MAX
from bettong.edges.kafka_log.fetched_ahead import FetchedAhead
from bettong.edges.kafka_log.librdkafka import (
    ALONE,
    client,
    connect,
    is_out_of_range,
    map_librdkafka_error,
    polled,
    topics_at,
)
from bettong.edges.kafka_log.record import TIMES_HEADER, TRACE_HEADER, Record
from bettong.edges.kafka_log.sizes import batch_bytes_max
from bettong.errors import LogError, LogTruncatedError, LogUnavailableError
from bettong.identifiers import TopicPartition

# Partitions share a fetch: a single one may fill it, and each gets at least this when there are many.
_PARTITION_FETCH_BYTES_MIN = 256 * 1024

# How long the broker holds a fetch for which it has no records.
_FETCH_WAIT_MS_MAX = 500

# A lost connection is reported when it is not back after this long, and then at intervals.
_OUTAGE_S = 1.0
_OUTAGE_AGAIN_S = 5.0
_PROBE_MS = 200

# Partitions whose next offset is out of range are reported one by one: after the first, the reader waits this long
# for the others, so that the error names them all, up to a maximum.
_OUT_OF_RANGE_GATHER_S = 0.2
_OUT_OF_RANGE_NAMED_MAX = 20

_DAMAGED = {KafkaError._BAD_MSG, KafkaError._BAD_COMPRESSION, KafkaError.INVALID_MSG}  # noqa: SLF001


class LogReader(Closing):
    """Reads partitions in order, each from its own offset, and never past a missing record. Use it from one thread.

    Reads ahead up to `fetch_bytes_max`, at least one frame, and takes two to three times that in memory.
    """

    def __init__(
        self,
        where: str | KafkaConnection,
        starts: Mapping[TopicPartition, int],
        *,
        frame_bytes_max: int,
        fetch_bytes_max: int = 16 * 1024 * 1024,
        counts_ahead: bool = False,
        on_wait: Callable[[str], None] | None = None,
    ) -> None:
        """Connects. `starts`: the first offset to read of each (topic, partition); more may be added later.

        `counts_ahead`: see `read_ahead`. `on_wait` gets a line for people when the broker cannot be reached, and
        then every few seconds.

        Raises LogUnavailableError when no broker answers within 10 s, LogError for a topic or partition that does
        not exist.
        """
        connection = KafkaConnection.of(where)
        self._connection, self._bootstrap = connection, connection.bootstrap
        self._on_wait = on_wait
        self._next: dict[TopicPartition, int] = {}
        self._fetched_ahead = FetchedAhead()
        self._faults: dict[TopicPartition, LogError] = {}
        self._out_of_range: dict[TopicPartition, KafkaError] = {}
        self._out_of_range_due_s, self._is_suspect = 0.0, False
        # A fetch from before a seek can fail after it: librdkafka then stops at the new offset too.
        self._stopped: set[TopicPartition] = set()
        self._reached_s = self._reported_s = time.monotonic()
        partition_bytes = max(fetch_bytes_max // max(len(starts), 1), _PARTITION_FETCH_BYTES_MIN)
        self._options = {
            **ALONE,
            "client.id": "bettong-reader",
            "group.id": "bettong-reader",  # required, but not joined
            # An aborted transaction leaves missing records, which are an error here.
            "isolation.level": "read_uncommitted",
            "check.crcs": True,
            # A larger batch is still delivered, alone (KIP-74): one with refused messages may be larger.
            "fetch.max.bytes": max(fetch_bytes_max, frame_bytes_max),
            "max.partition.fetch.bytes": partition_bytes,
            "receive.message.max.bytes": fetch_bytes_max
            + partition_bytes
            + batch_bytes_max(frame_bytes_max)
            + 512,
            "queued.max.messages.kbytes": max(fetch_bytes_max // 1024, 1),
            "fetch.wait.max.ms": _FETCH_WAIT_MS_MAX,
            "socket.timeout.ms": REQUEST_WAIT_MS_MAX,
            "error_cb": self._note_lost_connection,
            **(self._fetched_ahead.options if counts_ahead else {}),
        }
        self._added = AddedPartitions()
        self._consumer, self._partitions = connect(Consumer, connection, self._options)
        try:
            self._check_exist(set(starts))
            self._next = dict(starts)
            self._assign()
        except BaseException:
            self.close()
            raise

    def poll(self, timeout_ms: int, records_max: int) -> list[Record]:
        """The next records, in order within each partition; [] when none arrived within `timeout_ms`.

        Returns [] earlier while an added partition waits for the broker.

        While the broker cannot be reached it returns [], and resumes by itself when the broker is back.
        Raises LogTruncatedError when a partition's next record is no longer in the log, or the log ends before it
        (the log was lost); LogError for damaged records. It does so at the call after the one that finds out, which
        returns what comes before and what others have, and again until the partition is removed or sought.
        """
        if self._faults:
            raise next(iter(self._faults.values())).with_traceback(None)
        if self._out_of_range and time.monotonic() >= self._out_of_range_due_s:
            raise self._truncated_error()
        if self._added:
            timeout_ms = min(timeout_ms, WAIT_MS)
        try:
            found = polled(self._consumer, timeout_ms, records_max)
        except KafkaException as error:
            raise map_librdkafka_error(error.args[0], f"reading {self._names()}", self._bootstrap) from None
        records = []
        for each in found:
            key = topic, partition = TopicPartition(each.topic(), each.partition())
            if (event := each.error()) is not None:
                self._handle_event(key, each.offset(), event)
                continue
            if (expected := self._next.get(key)) is None:
                continue  # removed since it was fetched
            if each.offset() != expected:
                text = (
                    f"{topic}/{partition}: offset {expected} is missing, the log goes on with {each.offset()};"
                    " records were deleted or compacted away, or their producer used transactions"
                )
                self._faults.setdefault(key, LogTruncatedError(text))
                continue
            records.append(Record(topic, partition, expected, each.value() or b"", *_headers_of(each)))
            self._next[key] = expected + 1
        while self._stopped:
            self.seek(stopped := self._stopped.pop(), self._next[stopped])
        self._check_connection(has_records=bool(records))
        if self._added:
            self._hasten_added(records)
        return records

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Continues at `offset` in that partition. Raises LogError for a partition that this reader does not read."""
        if partition not in self._next:
            raise LogError(f"{partition}: this reader reads only {self._names()}")
        self.remove(partition)
        self.add(partition, offset)

    def look_up(self, topics: Iterable[str]) -> None:
        """Looks up topics in advance, so that a later `add` does not have to. Ignores missing topics."""
        for topic in topics:
            self._partitions_of(topic)

    def add(self, partition: TopicPartition, offset: int) -> None:
        """Adds a partition, from `offset`. Raises LogError when it does not exist.

        Interrupts no others that have records: where none arrives, polls fetch the partition over a new connection.
        """
        self._check_exist({partition})
        self._next[partition] = offset
        self._consumer.incremental_assign([Position(*partition, offset)])
        self._added.add(partition, self.lag(partition), time.monotonic())

    def remove(self, partition: TopicPartition) -> None:
        """Stops reading a partition and drops what was read ahead of it, without interrupting others."""
        del self._next[partition]
        self._consumer.incremental_unassign([Position(*partition)])
        self._added.discard(partition)
        self._faults.pop(partition, None)
        self._out_of_range.pop(partition, None)
        self._stopped.discard(partition)

    def lag(self, partition: TopicPartition) -> int | None:
        """Records from the next offset to the log's end, by the broker's last answer; None before the first one."""
        known = self._consumer.get_watermark_offsets(Position(*partition), cached=True)
        return max(0, known[1] - self._next[partition]) if known and known[1] >= 0 else None

    def read_ahead(self, partition: TopicPartition) -> int | None:
        """Records fetched but not polled, as of at most a second before the last poll; None while unknown.

        Call it from the thread that polls. Known only with `counts_ahead`.
        """
        return self._fetched_ahead.of(partition) if partition in self._next else None

    @property
    def is_suspect(self) -> bool:
        """Whether a connection was lost and the broker has not answered since. Does not block."""
        return self._is_suspect

    def positions(self) -> dict[TopicPartition, int]:
        """For each (topic, partition) the offset of the next record that `poll` returns. Does not block."""
        return dict(self._next)

    def close(self) -> None:
        """Closes the connection. Never raises."""
        self._consumer.close()

    def _assign(self) -> None:
        self._consumer.assign([Position(*partition, offset) for partition, offset in self._next.items()])

    def _hasten_added(self, records: Sequence[Record]) -> None:
        """Fetches added partitions over a new connection if the broker holds a fetch without them."""
        now_s = time.monotonic()
        self._added.note_poll(
            (TopicPartition(each.topic, each.partition) for each in records), self.lag, now_s
        )
        if self._added.needs_connection(now_s) and not self._is_suspect:
            self._reconnect(now_s)

    def _reconnect(self, now_s: float) -> None:
        try:
            fresh = client(Consumer, self._connection, self._options)
        except LogError:
            self._added.clear()  # the password's or a certificate's file is being replaced: this connection is good
            return
        self._consumer.close()
        self._consumer = fresh
        self._assign()
        self._added.note_connection(now_s)

    def _handle_event(self, partition: TopicPartition, offset: int | None, error: KafkaError) -> None:
        """Handles an error that librdkafka reports of a fetch at `offset`."""
        if error.code() in _DAMAGED:
            if partition in self._next:
                fault = map_librdkafka_error(error, f"reading {partition}", self._bootstrap)
                self._faults.setdefault(partition, fault)
        elif not is_out_of_range(error):
            self._note_lost_connection(error)
        elif partition in self._next and offset in (None, self._next[partition]):
            if not self._out_of_range:
                self._out_of_range_due_s = time.monotonic() + _OUT_OF_RANGE_GATHER_S
            self._out_of_range[partition] = error  # reported once: kept until the partition is removed
        elif partition in self._next:
            self._stopped.add(partition)

    def _note_lost_connection(self, _error: KafkaError) -> None:
        """Notes a lost connection. librdkafka never reports that one is back."""
        self._is_suspect = True

    def _check_exist(self, partitions: set[TopicPartition]) -> None:
        for topic in sorted({topic for topic, _ in partitions}):
            found = self._partitions_of(topic)
            if missing := sorted(number for name, number in partitions if name == topic and number >= found):
                raise LogError(
                    f"topic {topic} at {self._bootstrap} has {found} partitions, expected"
                    f" {', '.join(map(str, missing))} too; create the topics first"
                )

    def _partitions_of(self, topic: str) -> int:
        if topic not in self._partitions:
            self._partitions = topics_at(self._consumer, self._bootstrap, wait_ms=REQUEST_WAIT_MS_MAX)
        return self._partitions.get(topic, 0)

    def _truncated_error(self) -> LogTruncatedError:
        """The error for all partitions that are out of range. Asks for bounds until the broker does not answer."""
        missing, answers = [], True
        for id_, error in list(self._out_of_range.items())[:_OUT_OF_RANGE_NAMED_MAX]:
            known = self._bounds(id_) if answers else None
            answers = known is not None
            where = (
                f"the log holds {known[0]} up to {known[1]}" if known else f"it is not there ({error.str()})"
            )
            missing.append(f"{id_}: offset {self._next[id_]} is needed, {where}")
        if more := len(self._out_of_range) - len(missing):
            missing.append(f"and {more} more partitions")
        return LogTruncatedError(
            f"{'; '.join(missing)}; restore the topic or start under another application name,"
            " and keep its retention unlimited"
        )

    def _bounds(self, partition: TopicPartition) -> tuple[int, int] | None:
        """The first offset of the log and its end, from the broker; None when it does not answer in time."""
        try:
            found: tuple[int, int] | None = self._consumer.get_watermark_offsets(
                Position(*partition), timeout=REQUEST_WAIT_MS_MAX / 1000
            )
        except KafkaException:
            return None
        return found

    def _check_connection(self, *, has_records: bool) -> None:
        now_s = time.monotonic()
        if has_records or not self._is_suspect:
            self._is_suspect, self._reached_s = False, now_s
        elif now_s - max(self._reached_s, self._reported_s) > _OUTAGE_S:
            self._probe(now_s)

    def _probe(self, now_s: float) -> None:
        try:
            topics_at(self._consumer, self._bootstrap, wait_ms=_PROBE_MS)
        except LogUnavailableError:
            if self._on_wait and (
                self._reported_s < self._reached_s or now_s - self._reported_s > _OUTAGE_AGAIN_S
            ):
                self._reported_s = now_s
                self._on_wait(f"waiting for Kafka at {self._bootstrap} to go on reading {self._names()}")
        else:
            self._is_suspect = False

    def _names(self) -> str:
        return ", ".join(sorted({topic for topic, _ in self._next}))


def _headers_of(message: Message) -> tuple[bytes, bytes]:
    """The headers that `LogWriter` sets on a record; records of other clients may lack them or have others."""
    try:
        headers = cast("Sequence[tuple[str, bytes | None]] | None", message.headers())
    except (UnicodeDecodeError, SystemError):  # other clients can write header names that are not UTF-8
        return b"", b""
    times = traceparent = b""
    for name, value in headers or ():
        if name == TIMES_HEADER:
            times = times or value or b""
        elif name == TRACE_HEADER:
            traceparent = traceparent or value or b""
    return times, traceparent
