"""Appends to the log: durably, in order, each value once."""

import itertools
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from bettong.closing import Closing
from bettong.config.connection_settings import KafkaConnection
from bettong.edges.kafka_log.librdkafka import connect, map_librdkafka_error, topics_at
from bettong.edges.kafka_log.record import TIMES_HEADER, TRACE_HEADER
from bettong.edges.kafka_log.sizes import RECORD_BYTES, TRACE_BYTES, batch_bytes_max, value_bytes_max
from bettong.errors import LogError, LogUnavailableError
from bettong.identifiers import TopicPartition

Done = Callable[[int | LogError], None]

# The most bytes of one partition in a request.
_BATCH_BYTES = 1024 * 1024

# An unanswered request is sent again after this long: more than a busy disk needs for a batch.
_ANSWER_WAIT_MS_MAX = 15_000

_TOPIC_WAIT_MS_MAX = 5_000

_STOP_WAIT_S = 5.0

_PURGED = {KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT}  # noqa: SLF001 - its own codes

# How often the age of values in flight is checked; the writer's thread ends within this time.
_POLL_S = 0.1


class LogWriter(Closing):
    """Appends values to partitions: replicated as the topic requires, in order for each partition, without duplicates.

    A partition always holds a prefix of the values appended to it: after the first value that could not be delivered
    within `delivery_timeout_ms`, or that the broker refused, nothing more is sent; every value in flight, and each
    later `append`, fails with an error of the failure's type. Then close the writer and create a new one. A value that
    failed may still be in the log, if the answer was lost.
    While the broker is unavailable a writer retries by itself. Safe to use from several threads.

    An idempotent producer (KIP-98), with librdkafka's guarantee that no value overtakes a failed one. The delivery
    timeout is implemented here, because librdkafka's own would let later values through.
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

        `buffer_bytes_max` bounds the bytes of all unanswered values, plus RECORD_BYTES for each, and so their number.
        Memory: about twice that.
        """
        connection = KafkaConnection.of(where)
        self._bootstrap = connection.bootstrap
        self._value_bytes_max = value_bytes_max(frame_bytes_max)
        self._buffer_bytes_max = buffer_bytes_max
        self._delivery_timeout_ms = delivery_timeout_ms
        self._changed = threading.Condition()
        self._buffered = 0
        self._numbers = itertools.count()
        # When each unanswered value was appended, oldest first.
        self._appended_s: dict[int, float] = {}
        self._failure: LogError | None = None
        # librdkafka's fatal error. The answer that caused it follows, maybe after all others, and names the partition.
        self._fatal: KafkaError | None = None
        # Answers to values that librdkafka dropped because of an error whose own answer has not arrived yet.
        self._unexplained: list[Callable[[], None]] = []
        self._closed = False
        # Whether `close` drops the values that are not answered in time.
        self._drops = False
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
                # With more, a value can be lost: a broker that does not know the producer, because the topic is new or
                # was idle for a day, accepts the second batch after it refused the first (not the leader yet), and
                # librdkafka then counts the first as delivered.
                "max.in.flight.requests.per.connection": 1,
                "linger.ms": 0,
                "batch.size": min(_BATCH_BYTES, batch_bytes),
                "message.max.bytes": max(batch_bytes, 1000),
                # The buffer is bounded by `buffer_bytes_max`.
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
        """Why this writer has failed; None while it works."""
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
        """Starts to send a value, and returns.

        Blocks only while the buffer is full, at most for the delivery timeout, and at the first use of a topic, for
        a request to the broker, at most 5 s. `on_done` is called exactly once, with the offset or the error, on the
        writer's own thread: it must be quick, and must neither block nor raise.
        `times` (`latency_parts.WorkerTimes`) and `traceparent` (`traces.TraceContext`) are sent as headers of the
        record. A value of the maximum size is sent without `traceparent`.

        Raises LogError at once, without calling `on_done`, for a value larger than `frame_bytes_max` plus
        envelope, an unknown topic or partition, a closed or failed writer; LogUnavailableError when it blocked
        for too long, or a broker that did not answer has failed the writer.
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
            on_delivery = partial(self._on_delivery, doing, number, size, on_done)
            try:
                self._producer.produce(
                    to.topic, value, partition=to.partition, on_delivery=on_delivery, headers=headers
                )
            except KafkaException as error:  # the producer has just failed; `failure` follows
                cause = map_librdkafka_error(error.args[0], doing, self._bootstrap)
                raise _unusable(doing, cause) from None
            self._appended_s[number] = time.monotonic()
            self._buffered += size

    def flush(self, timeout_s: float) -> None:
        """Blocks until all values are answered. LogUnavailableError when that takes longer than `timeout_s`."""
        if not self._drained(timeout_s):
            raise LogUnavailableError(
                f"flushing: {len(self._appended_s)} value(s) without an answer from Kafka at {self._bootstrap}"
                f" after {timeout_s} s; is it running and reachable?"
            )

    def close(self, timeout_s: float = 10.0) -> None:
        """Flushes for at most `timeout_s`, fails the remaining values with LogError, and stops. Never raises."""
        with self._changed:
            if self._closed:
                return
            self._closed = True
            self._changed.notify_all()
        if not self._drained(timeout_s):
            self._drops = True
            self._fail_if_fatal()
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
        """Waits for room in the buffer. An empty buffer accepts any value, so that none waits forever."""
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
            raise _unusable(doing, self._failure or LogError("it was closed"))
        if not free:
            raise LogUnavailableError(
                f"{doing}: the buffer of {self._buffer_bytes_max} bytes stayed full for"
                f" {self._delivery_timeout_ms} ms; is Kafka at {self._bootstrap} running and reachable?"
            )

    def _fail_if_fatal(self) -> None:
        """Fails the writer by librdkafka's fatal error, if there is one and nothing has failed it yet."""
        if self._fatal is not None:
            self._fail(map_librdkafka_error(self._fatal, "appending", self._bootstrap))

    # The methods below run on the writer's own thread.

    def _serve(self) -> None:
        while not self._ended:
            try:
                answered = self._producer.poll(_POLL_S)
                if not answered:
                    self._fail_if_fatal()
                if self._failure is not None or self._drops:
                    self._answer_unexplained()
            except KafkaException as error:
                if not self._drops:  # else what `close` dropped has caused it
                    self._fatal = error.args[0]
            with self._changed:
                oldest_s = next(iter(self._appended_s.values()), None)
            if oldest_s is not None and self._failure is not None:
                self._purge()  # values that were between the producer's queues at the last purge
            elif oldest_s is not None and time.monotonic() - oldest_s > self._delivery_timeout_ms / 1000:
                self._fail(
                    LogUnavailableError(
                        f"appending: no answer from Kafka at {self._bootstrap} for {self._delivery_timeout_ms} ms;"
                        " is it running and reachable?"
                    )
                )
        # For whoever uses the writer after it was closed.
        self._fail_if_fatal()

    def _on_delivery(
        self, doing: str, number: int, size: int, on_done: Done, error: KafkaError | None, message: Any
    ) -> None:
        """The producer's delivery callback, called once for each value."""
        is_purged = error is not None and error.code() in _PURGED
        if is_purged and self._failure is None and not self._drops:
            again = partial(self._on_delivery, doing, number, size, on_done, error, message)
            self._unexplained.append(again)
            return
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

    def _answer_unexplained(self) -> None:
        answers, self._unexplained = self._unexplained, []
        for answer in answers:
            answer()

    def _fault(self, error: KafkaError, doing: str) -> LogError:
        """Maps an error. The first one stops the writer; later ones refer to it."""
        if self._failure is None:
            if error.code() in _PURGED:  # by `close`: others wait for their cause
                return LogError(f"{doing}: the writer was closed before Kafka answered")
            first = map_librdkafka_error(error, doing, self._bootstrap)
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
        """Drops all values in flight, each of which is answered with an error."""
        self._producer.purge(blocking=False)

    def _drained(self, timeout_s: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: not self._appended_s, timeout_s)


def _unusable(doing: str, cause: LogError) -> LogError:
    """An error of the type of its cause, by which a caller sees whether a new writer may succeed."""
    return type(cause)(f"{doing}: this writer cannot be used any more: {cause}")
