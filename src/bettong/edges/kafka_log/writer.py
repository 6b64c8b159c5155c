"""Appends to the log: durable, in order, each value once."""

import itertools
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from bettong.closing import Closing
from bettong.config.connection_settings import KafkaConnection
from bettong.edges.kafka_log.librdkafka import connect, fault, topics_at
from bettong.edges.kafka_log.record import TIMES_HEADER, TRACE_HEADER
from bettong.edges.kafka_log.sizes import RECORD_BYTES, TRACE_BYTES, batch_bytes_max, value_bytes_max
from bettong.errors import LogError, LogUnavailableError
from bettong.identifiers import TopicPartition

Done = Callable[[int | LogError], None]

# What a trip to the broker carries for one partition at most.
_BATCH_BYTES = 1024 * 1024

# An unanswered request is sent again after this long: more than a busy disk needs for one batch.
_ANSWER_WAIT_MS_MAX = 15_000

_TOPIC_WAIT_MS_MAX = 5_000

_STOP_WAIT_S = 5.0

_PURGED = {KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT}  # noqa: SLF001 - its own codes

# The age of what is in flight is checked this often, and the writer's thread ends within it.
_POLL_S = 0.1


class LogWriter(Closing):
    """Appends values to partitions: replicated as the topic asks, in order for each partition, without duplicates.

    What lies in a partition is always a prefix of what was appended to it: after the first value that could not be
    delivered within `delivery_timeout_ms` (or that the broker refused) nothing more is sent, every value in flight
    is answered with a LogError, and so is each later `append`. Then close the writer and make a new one; a value
    that was answered with an error may nevertheless lie in the log (the answer was lost).
    While the broker is away a writer retries by itself. Safe to use from several threads.

    Idempotent producer (KIP-98), with librdkafka's guarantee that nothing overtakes what failed. The delivery timeout
    is kept here: librdkafka's own would let later values go on.
    """

    def __init__(
        self,
        where: str | KafkaConnection,
        *,
        frame_bytes_max: int,
        buffer_bytes_max: int,
        delivery_timeout_ms: int = 120_000,
    ) -> None:
        """Connects. Raises LogUnavailableError when no broker answers within 10 s.

        `buffer_bytes_max` bounds the bytes of all values that are not answered yet, with RECORD_BYTES for each of
        them, and so their number; memory: about twice that.
        """
        connection = KafkaConnection.of(where)
        self._bootstrap = connection.bootstrap
        self._value_bytes_max = value_bytes_max(frame_bytes_max)
        self._buffer_bytes_max = buffer_bytes_max
        self._delivery_timeout_ms = delivery_timeout_ms
        self._changed = threading.Condition()
        self._buffered = 0
        self._numbers = itertools.count()
        # When each value that is not answered was appended, the oldest first.
        self._appended_s: dict[int, float] = {}
        self._failure: LogError | None = None
        self._closed = False
        self._ended = False
        batch_bytes = batch_bytes_max(frame_bytes_max)
        self._producer, self._partitions = connect(
            Producer,
            connection,
            {
                "client.id": "bettong-writer",
                "acks": "all",
                "enable.idempotence": True,
                "enable.gapless.guarantee": True,
                # With more a value is lost: a broker that knows nothing of a producer, for a topic is new or idle for
                # a day, takes the second batch after it refused the first (not the leader yet), and librdkafka counts
                # the first as delivered then.
                "max.in.flight.requests.per.connection": 1,
                "linger.ms": 0,
                "batch.size": min(_BATCH_BYTES, batch_bytes),
                "message.max.bytes": max(batch_bytes, 1000),
                # The buffer is bounded here, by `buffer_bytes_max`.
                "queue.buffering.max.messages": 0,
                "queue.buffering.max.kbytes": 2**31 - 1,
                "message.timeout.ms": 0,
                "request.timeout.ms": min(_ANSWER_WAIT_MS_MAX, delivery_timeout_ms),
                "socket.timeout.ms": min(_ANSWER_WAIT_MS_MAX, delivery_timeout_ms),
                "retry.backoff.ms": 50,
                "retry.backoff.max.ms": 500,
            },
        )
        self._serving = threading.Thread(target=self._serve, name="log-writer", daemon=True)
        self._serving.start()

    @property
    def failure(self) -> LogError | None:
        """Why this writer is of no more use; None while it works."""
        return self._failure

    def append(
        self,
        to: TopicPartition,
        value: bytes,
        on_done: Done,
        *,
        times: bytes = b"",
        traceparent: bytes = b"",
    ) -> None:
        """Takes a value to be appended, which is sent at once, and returns.

        Blocks only while the buffer is full, at most for the delivery timeout, and the first time a topic is named,
        for a trip to the broker, at most 5 s. `on_done` is called exactly once, with the offset or with the error, on
        the writer's own thread: it must be quick and must neither block nor raise.
        `times` (`latency_parts.WorkerTimes`) and `traceparent` (`traces.TraceContext`) lie beside the value, in headers
        of its record: they are no part of it. A value that is as large as one may be goes without `traceparent`.

        Raises LogError at once, and never calls `on_done`, for a value larger than `frame_bytes_max` plus
        envelope, an unknown topic or partition, a closed or failed writer; LogUnavailableError when it blocked
        for too long.
        """
        doing = f"appending to {to}"
        if len(value) > self._value_bytes_max:
            raise LogError(
                f"{doing}: a value of {len(value)} bytes, expected at most {self._value_bytes_max};"
                " send smaller frames, or raise BETTONG_FRAME_BYTES_MAX and the topic's max.message.bytes"
            )
        self._check_exists(to, doing)
        size = len(value) + RECORD_BYTES
        headers = [(TIMES_HEADER, times)] if times else None
        if traceparent and len(value) + TRACE_BYTES <= self._value_bytes_max:
            headers = [*(headers or ()), (TRACE_HEADER, traceparent)]
        with self._changed:
            self._await_room(doing, size)
            number = next(self._numbers)
            on_delivery = partial(self._answered, doing, number, size, on_done)
            try:
                self._producer.produce(
                    to.topic, value, partition=to.partition, on_delivery=on_delivery, headers=headers
                )
            except KafkaException as error:  # it has failed a moment ago, and says so soon
                raise LogError(f"{doing}: this writer is of no more use: {error.args[0].str()}") from None
            self._appended_s[number] = time.monotonic()
            self._buffered += size

    def flush(self, timeout_s: float) -> None:
        """Blocks until no value is unanswered. LogUnavailableError when that takes longer than `timeout_s`."""
        if not self._drained(timeout_s):
            raise LogUnavailableError(
                f"flushing: {len(self._appended_s)} value(s) without an answer from Kafka at {self._bootstrap}"
                f" after {timeout_s} s; is it running and reachable?"
            )

    def close(self, timeout_s: float = 10.0) -> None:
        """Flushes for at most `timeout_s`, answers what is left with LogError, and stops. Never raises."""
        with self._changed:
            if self._closed:
                return
            self._closed = True
            self._changed.notify_all()
        if not self._drained(timeout_s):
            self._purge()
            self._drained(_STOP_WAIT_S)
        self._ended = True
        self._serving.join(_STOP_WAIT_S)
        self._producer.close()

    def _check_exists(self, to: TopicPartition, doing: str) -> None:
        topic, partition = to
        if topic not in self._partitions:
            self._partitions = topics_at(self._producer, self._bootstrap, wait_ms=_TOPIC_WAIT_MS_MAX)
        if topic not in self._partitions:
            raise LogError(f"{doing}: there is no such topic; create the topics first")
        if partition >= self._partitions[topic]:
            raise LogError(
                f"{doing}: there is no such partition, the topic has {self._partitions[topic]};"
                " create the topics first"
            )

    def _await_room(self, doing: str, size: int) -> None:
        """Waits for room in the buffer. An empty buffer takes any value, so that none waits for ever."""
        free = self._changed.wait_for(
            lambda: (
                self._closed
                or self._failure
                or not self._buffered
                or self._buffered + size <= self._buffer_bytes_max
            ),
            self._delivery_timeout_ms / 1000,
        )
        if self._closed or self._failure:
            raise LogError(f"{doing}: this writer is of no more use: {self._failure or 'it was closed'}")
        if not free:
            raise LogUnavailableError(
                f"{doing}: the buffer of {self._buffer_bytes_max} bytes stayed full for"
                f" {self._delivery_timeout_ms} ms; is Kafka at {self._bootstrap} running and reachable?"
            )

    # From here on: the writer's own thread.

    def _serve(self) -> None:
        fatal: KafkaError | None = None
        while not self._ended:
            try:
                self._producer.poll(_POLL_S)
                if fatal is not None and not self._closed:
                    self._fail(fault(fatal, "appending", self._bootstrap))
            except KafkaException as error:
                fatal = error.args[0]  # the answer that caused it comes next, and names the partition
            with self._changed:
                oldest_s = next(iter(self._appended_s.values()), None)
            if oldest_s is not None and self._failure is not None:
                self._purge()  # what was on its way between its queues the last time
            elif oldest_s is not None and time.monotonic() - oldest_s > self._delivery_timeout_ms / 1000:
                self._fail(
                    LogUnavailableError(
                        f"appending: no answer from Kafka at {self._bootstrap} for {self._delivery_timeout_ms} ms;"
                        " is it running and reachable?"
                    )
                )

    def _answered(
        self, doing: str, number: int, size: int, on_done: Done, error: KafkaError | None, message: Any
    ) -> None:
        """Called by the producer, once for each value."""
        try:
            if error is None:
                on_done(message.offset())
            else:
                on_done(self._fault(error, doing))
        finally:
            with self._changed:
                del self._appended_s[number]
                self._buffered -= size
                self._changed.notify_all()

    def _fault(self, error: KafkaError, doing: str) -> LogError:
        """The first error ends the writer; those that follow from its end say so."""
        if self._failure is None:
            if self._closed and error.code() in _PURGED:
                return LogError(f"{doing}: the writer was closed before Kafka answered")
            first = fault(error, doing, self._bootstrap)
            self._fail(first)
            return first
        return type(self._failure)(f"{doing}: not answered, the writer stopped: {self._failure}")

    def _fail(self, failure: LogError) -> None:
        with self._changed:
            if self._failure is not None:
                return
            self._failure = failure
            self._changed.notify_all()
        self._purge()

    def _purge(self) -> None:
        """Nothing more is sent: each value in flight is answered with an error."""
        self._producer.purge(blocking=False)

    def _drained(self, timeout_s: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: not self._appended_s, timeout_s)
