"""Appending to the log: durable, in order, each value once."""

import threading
import time
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Any, Self

from kafka import KafkaProducer
from kafka.errors import KafkaError, KafkaTimeoutError

from bettong.edges.kafka_log.connecting import (
    CONNECT_WAIT_MS_MAX,
    batch_bytes_max,
    connect,
    is_connected,
    translated,
    value_bytes_max,
)
from bettong.errors import LogError, LogUnavailableError

Done = Callable[[int | LogError], None]

# One batch a partition is under way at a time, so this bounds what a trip to the broker carries for it. Measured with
# values of 16 and 256 KB: 64 KiB gives 34 and 87 MB/s, 256 KiB 110 and 180, 1 MiB 150 and 250; more gains no more.
_BATCH_BYTES = 1024 * 1024

# A request carries the batches of several partitions. A broker refuses more than 100 MiB by default.
_REQUEST_BYTES_MAX = 8 * 1024 * 1024

# An unanswered request is sent again after this long: more than a busy disk needs for one batch.
_ANSWER_WAIT_MS_MAX = 15_000

_TOPIC_WAIT_MS_MAX = 5_000

_STOP_WAIT_S = 5.0

_LOOK_S = 0.002


class LogWriter:
    """Appends values to partitions: replicated as the topic asks, in order for each partition, without duplicates.

    What lies in a partition is always a prefix of what was appended to it: after the first value that could not be
    delivered within `delivery_timeout_ms` (or that the broker refused) nothing more is sent, every value under way
    is answered with a LogError, and so is each later `append`. Then close the writer and make a new one; a value
    that was answered with an error may nevertheless lie in the log (the answer was lost).
    While the broker is away a writer retries by itself. Safe to use from several threads.

    Idempotent producer: KIP-98, KIP-679. kafka-python keeps one batch a partition under way, which gives the order.
    """

    def __init__(
        self,
        bootstrap: str,
        *,
        frame_bytes_max: int,
        buffer_bytes_max: int,
        delivery_timeout_ms: int = 120_000,
    ) -> None:
        """Connects. Raises LogUnavailableError when no broker answers within 10 s.

        `buffer_bytes_max` bounds the bytes of all values that are not answered yet; memory: about twice that.
        """
        self._bootstrap = bootstrap
        self._value_bytes_max = value_bytes_max(frame_bytes_max)
        self._buffer_bytes_max = buffer_bytes_max
        self._delivery_timeout_ms = delivery_timeout_ms
        self._changed = threading.Condition()
        self._buffered = 0
        self._unanswered = 0
        self._failure: LogError | None = None
        self._closed = False
        self._stopped = False
        self._producer, self._network = connect(
            KafkaProducer,
            bootstrap,
            client_id="bettong-writer",
            acks="all",
            enable_idempotence=True,
            batch_size=min(_BATCH_BYTES, batch_bytes_max(frame_bytes_max)),
            max_request_size=max(_REQUEST_BYTES_MAX, batch_bytes_max(frame_bytes_max)),
            linger_ms=0,
            delivery_timeout_ms=delivery_timeout_ms,
            request_timeout_ms=min(_ANSWER_WAIT_MS_MAX, delivery_timeout_ms),
            max_block_ms=_TOPIC_WAIT_MS_MAX,
            allow_auto_create_topics=False,
            metrics_enabled=False,
        )
        self._await_producer_id()

    @property
    def failure(self) -> LogError | None:
        """Why this writer is of no more use; None while it works."""
        return self._failure

    def append(self, topic: str, partition: int, value: bytes, on_done: Done) -> None:
        """Takes a value to be appended, which is sent at once, and returns.

        Blocks only while the buffer is full, at most for the delivery timeout, and the first time a topic is named,
        for a trip to the broker, at most 5 s. `on_done` is called exactly once, with the offset or with the error, on
        the writer's own thread (seldom, when all goes very fast, on this one before `append` returns): it must be
        quick and must neither block nor raise.

        Raises LogError at once, and never calls `on_done`, for a value larger than `frame_bytes_max` plus
        envelope, an unknown topic or partition, a closed or failed writer; LogUnavailableError when it blocked
        for too long.
        """
        place = f"appending to {topic}/{partition}"
        if len(value) > self._value_bytes_max:
            raise LogError(
                f"{place}: a value of {len(value)} bytes, expected at most {self._value_bytes_max};"
                " send smaller frames, or raise BETTONG_FRAME_BYTES_MAX and the topic's max.message.bytes"
            )
        self._enter(place, len(value))
        try:
            future = self._producer.send(topic, value, partition=partition)
        except (KafkaError, ValueError) as error:
            self._leave(len(value))
            raise self._refusal(error, place) from None
        future.add_both(partial(self._answered, place, len(value), on_done))

    def flush(self, timeout_s: float) -> None:
        """Blocks until no value is unanswered. LogUnavailableError when that takes longer than `timeout_s`."""
        if not self._drained(timeout_s):
            raise LogUnavailableError(
                f"flushing: {self._unanswered} value(s) without an answer from Kafka at {self._bootstrap}"
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
            self._stop()
            self._drained(_STOP_WAIT_S)
        try:
            self._producer.close(timeout=_STOP_WAIT_S)
        except KafkaError:
            self._stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _await_producer_id(self) -> None:
        """Kafka gives an idempotent producer its id first. Until then kafka-python keeps no delivery timeout."""
        deadline = time.monotonic() + CONNECT_WAIT_MS_MAX / 1000
        while not self._producer._transaction_manager.has_producer_id():  # noqa: SLF001 - nothing public tells
            if time.monotonic() > deadline:
                self.close(0)
                raise LogUnavailableError(
                    f"connecting: Kafka at {self._bootstrap} gave no producer id within"
                    f" {CONNECT_WAIT_MS_MAX} ms; is it healthy?"
                )
            time.sleep(_LOOK_S)

    def _enter(self, place: str, size: int) -> None:
        """Takes room in the buffer. An empty buffer takes any value, so that none waits for ever."""
        with self._changed:
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
                raise LogError(f"{place}: this writer is of no more use: {self._failure or 'it was closed'}")
            if not free:
                raise LogUnavailableError(
                    f"{place}: the buffer of {self._buffer_bytes_max} bytes stayed full for"
                    f" {self._delivery_timeout_ms} ms; is Kafka at {self._bootstrap} running and reachable?"
                )
            self._buffered += size
            self._unanswered += 1

    def _leave(self, size: int) -> None:
        with self._changed:
            self._buffered -= size
            self._unanswered -= 1
            self._changed.notify_all()

    def _answered(self, place: str, size: int, on_done: Done, answer: Any) -> None:
        """Called by the producer, once for each value, with its metadata or an error."""
        try:
            if isinstance(answer, BaseException):
                on_done(self._fail(answer, place))
            else:
                on_done(answer.offset)
        finally:
            self._leave(size)

    def _fail(self, error: BaseException, place: str) -> LogError:
        """The first error ends the writer; those that follow from its end say so."""
        with self._changed:
            if not self._stopped:
                self._failure = translated(error, place, self._bootstrap)
                self._stop()
                return self._failure
            if self._failure is None:
                return LogError(f"{place}: the writer was closed before Kafka answered")
            return type(self._failure)(f"{place}: not answered, the writer stopped: {self._failure}")

    def _refusal(self, error: Exception, place: str) -> LogError:
        """What `send` says at once: about a topic, a partition, or a producer that stopped a moment ago."""
        if self._closed or self._failure:
            return LogError(f"{place}: this writer is of no more use: {self._failure or 'it was closed'}")
        if isinstance(error, ValueError):
            return LogError(f"{place}: there is no such partition; create the topics first ({error})")
        if isinstance(error, KafkaTimeoutError) and is_connected(self._network):
            return LogError(f"{place}: there is no such topic; create the topics first")
        return translated(error, place, self._bootstrap)

    def _stop(self) -> None:
        """Ends the producer's thread without sending what is left: each value is answered with an error.

        `KafkaProducer.close` cannot do this: it raises, and leaves its thread running, when something is left.
        """
        self._stopped = True
        self._producer._sender.force_close()  # noqa: SLF001 - see above

    def _drained(self, timeout_s: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: not self._unanswered, timeout_s)
