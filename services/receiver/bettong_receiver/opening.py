"""Opens everything that deliveries need, as patiently as it takes: topics, positions, files, readers."""

import threading
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from bettong.application.plan import Plan
from bettong.edges.kafka_log import LogAdmin, LogReader, LogWriter
from bettong.edges.redis_store import RedisSink, RedisStore
from bettong.errors import LogUnavailableError, StoreError
from bettong.settings import ReceiverSettings
from bettong_receiver.file_target import FileTarget
from bettong_receiver.formats import SinkFormat
from bettong_receiver.progress import SinkPartition
from bettong_receiver.redis_target import RedisTarget
from bettong_receiver.status import Status

# One wait for Kafka or Redis. Waits are repeated without end, in pieces, so that a stop is not held up by one.
_WAIT_S = 2.0
_PAUSE_S = 0.2
# Of a reader that serves one foreign system (see LogReader for what it holds): times the sinks with a destination.
_OWN_FETCH_BYTES_MAX = 4 * 1024 * 1024
# Of dead letters on their way to the log, of one foreign system.
_LETTERS_BYTES_MAX = 4 * 1024 * 1024

_Found = TypeVar("_Found")


class Opening:
    """The parts of one receiver. Methods block; they return None when `stopping` was set while they waited."""

    def __init__(
        self,
        settings: ReceiverSettings,
        plan: Plan,
        formats: Mapping[str, SinkFormat],
        store: RedisStore,
        status: Status,
        stopping: threading.Event,
    ) -> None:
        self._settings = settings
        self._plan = plan
        self._formats = formats
        self._store = store
        self._status = status
        self._stopping = stopping

    def beginnings(self) -> dict[SinkPartition, int] | None:
        """Creates and checks the topics; where the log begins of each partition that this receiver delivers.

        That is all of them as long as one pod delivers everything. Raises LogError for topics that do not fit the
        settings.
        """
        with self.admin() as admin:
            return self._patiently("Kafka", lambda: self._prepared(admin))

    def files(self, beginnings: Mapping[SinkPartition, int]) -> FileTarget | None:
        """The file sink; None when it is not wanted. Raises SinkError."""
        folder = self._settings.receiver_dir
        if folder is None:
            return None
        return FileTarget(folder, self._plan.application, self._formats, beginnings)

    def redis(self, beginnings: Mapping[SinkPartition, int]) -> RedisTarget | None:
        """The Redis sink. Raises PositionError."""
        return self._patiently("Redis", lambda: self._redis(beginnings))

    def reader(self, starts: Mapping[tuple[str, int], int]) -> LogReader | None:
        """What the deliveries read from. Raises LogError."""
        return self._patiently("Kafka", lambda: self._reader(starts))

    def own_reader(self, starts: Mapping[tuple[str, int], int]) -> LogReader:
        """What one foreign system is fed from.

        Raises LogError, LogUnavailableError at once when Kafka is away.
        """
        return self._ahead(starts, _OWN_FETCH_BYTES_MAX)

    def subscriber_reader(self, starts: Mapping[tuple[str, int], int]) -> LogReader:
        """What one subscriber is fed from. See `own_reader`."""
        return self._ahead(starts, self._settings.receiver_subscriber_bytes_max)

    def writer(self) -> LogWriter:
        """What the dead letters of one foreign system are appended with. LogUnavailableError when Kafka is away."""
        return LogWriter(
            self._settings.kafka_connection,
            frame_bytes_max=self._settings.frame_bytes_max,
            buffer_bytes_max=_LETTERS_BYTES_MAX,
        )

    def admin(self, *, answer_wait_s_max: float = 10.0) -> LogAdmin:
        """For one thread to ask the log questions with. Does not connect yet."""
        return LogAdmin(self._settings.kafka_connection, answer_wait_s_max=answer_wait_s_max)

    def _ahead(self, starts: Mapping[tuple[str, int], int], fetch_bytes_max: int) -> LogReader:
        return LogReader(
            self._settings.kafka_connection,
            starts,
            frame_bytes_max=self._settings.frame_bytes_max,
            fetch_bytes_max=fetch_bytes_max,
        )

    def _patiently(self, part: str, attempt: Callable[[], _Found]) -> _Found | None:
        while not self._stopping.is_set():
            try:
                found = attempt()
            except (LogUnavailableError, StoreError) as error:
                self._status.waits_for(part, str(error))
                self._stopping.wait(_PAUSE_S)
            else:
                self._status.has(part)
                return found
        return None

    def _prepared(self, admin: LogAdmin) -> dict[SinkPartition, int]:
        settings, topics = self._settings, self._plan.topics
        partitions, frame_bytes_max = settings.partitions, settings.frame_bytes_max
        admin.wait(_WAIT_S, lambda why: self._status.waits_for("Kafka", why))
        admin.create_topics(
            topics, partitions=partitions, replication=settings.replication, frame_bytes_max=frame_bytes_max
        )
        admin.check_topics(topics, partitions=partitions, frame_bytes_max=frame_bytes_max)
        sinks = {sink_format.topic: sink for sink, sink_format in self._formats.items()}
        found = admin.beginnings(sinks)
        return {(sinks[topic], partition): offset for (topic, partition), offset in found.items()}

    def _redis(self, beginnings: Mapping[SinkPartition, int]) -> RedisTarget:
        def on_wait(why: str | None) -> None:
            if why is None:
                self._status.has("Redis")
            else:
                self._status.waits_for("Redis", why)

        self._store.wait(_WAIT_S, lambda why: self._status.waits_for("Redis", why))
        return RedisTarget(
            RedisSink(self._store),
            self._plan.application,
            beginnings,
            results_max=self._settings.receiver_redis_results_max,
            monotonic_s=time.monotonic,
            on_wait=on_wait,
        )

    def _reader(self, starts: Mapping[tuple[str, int], int]) -> LogReader:
        return LogReader(
            self._settings.kafka_connection,
            starts,
            frame_bytes_max=self._settings.frame_bytes_max,
            on_wait=lambda why: self._status.waits_for("Kafka", why),
        )
