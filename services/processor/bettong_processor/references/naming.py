"""Appends a record that names a version to each partition of a stage."""

import queue
from collections.abc import Callable
from functools import partial

from bettong.clocks import CheckedClock
from bettong.edges.kafka_log import LogWriter
from bettong.edges.redis_store import RedisStore
from bettong.errors import LogError, LogUnavailableError
from bettong.frames.frame import reference_record
from bettong.identifiers import ReferenceVersion, TopicPartition
from bettong.snapshots.references import Offsets
from bettong.topics import stage_topic

# Of the producer's buffer: one record a partition is in flight, of some hundred bytes.
BUFFER_BYTES_MAX = 1024 * 1024
# For acknowledgements. Records that are not acknowledged are appended again later; duplicates have no effect.
ANSWER_MS_MAX = 30_000


class Naming:
    """Opens a writer for each version, for tables are loaded seldom."""

    def __init__(
        self,
        application: str,
        partitions: int,
        *,
        connect: Callable[[], LogWriter],
        clock: CheckedClock,
        redis: RedisStore,
    ) -> None:
        """`connect` makes a writer with a delivery timeout of ANSWER_MS_MAX; it may block, and raise LogError."""
        self._application = application
        self._partitions = partitions
        self._connect = connect
        self._clock = clock
        self._redis = redis

    def name(self, stage: str, version: ReferenceVersion) -> Offsets:
        """Appends the records; returns their offsets by partition. After a LogError or StoreError some may exist."""
        topic = stage_topic(self._application, stage)
        value = reference_record(stage, self._clock.now_ns(self._redis.time_ns()), version)
        answers: queue.SimpleQueue[tuple[int, int | LogError]] = queue.SimpleQueue()
        offsets: dict[int, int] = {}
        with self._connect() as writer:
            for partition in range(self._partitions):
                writer.append(TopicPartition(topic, partition), value, partial(_answered, answers, partition))
            for _ in range(self._partitions):
                try:
                    partition, answer = answers.get(timeout=2 * ANSWER_MS_MAX / 1000)
                except queue.Empty:
                    raise LogUnavailableError(f"naming {version}: no answer from the log") from None
                if isinstance(answer, LogError):
                    raise answer
                offsets[partition] = answer
        return offsets


def _answered(
    answers: queue.SimpleQueue[tuple[int, int | LogError]], partition: int, answer: int | LogError
) -> None:
    answers.put((partition, answer))
