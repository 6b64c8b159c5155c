"""Opens what deliveries and subscribers read from and write to: topics, readers, writers."""

import threading
from collections.abc import Mapping

from bettong.application.plan import Plan
from bettong.backoff import Backoff
from bettong.config.receiver import ReceiverSettings
from bettong.edges.kafka_log import LogAdmin, LogReader, LogWriter
from bettong.edges.partitioning_log import prepare_topics
from bettong.errors import LogUnavailableError
from bettong.identifiers import TopicPartition
from bettong_receiver.formats import SinkFormat
from bettong_receiver.progress import SinkPartition
from bettong_receiver.status import ReceiverStatus

# One wait for Kafka. Waits repeat without limit; each is short so that it does not delay a stop.
_WAIT_S = 2.0
_RETRY_S, _RETRY_S_MAX = 0.2, 1.0
# Buffer for the dead letters of one external system.
_DEAD_LETTERS_BYTES_MAX = 4 * 1024 * 1024


class Opening:
    """Opens readers and writers for one receiver. Methods block."""

    def __init__(
        self,
        settings: ReceiverSettings,
        plan: Plan,
        formats: Mapping[str, SinkFormat],
        status: ReceiverStatus,
        stopping: threading.Event,
    ) -> None:
        self._settings = settings
        self._plan = plan
        self._formats = formats
        self._status = status
        self._stopping = stopping

    def beginnings(self) -> dict[SinkPartition, int] | None:
        """Creates and checks the topics; returns the first offset of each partition that this receiver delivers.

        These are all partitions as long as one pod delivers everything. Waits for Kafka without limit; returns None if
        `stopping` is set meanwhile. Raises LogError for topics that do not match the settings.
        """
        backoff = Backoff(_RETRY_S, _RETRY_S_MAX)
        with self.admin() as admin:
            while not self._stopping.is_set():
                try:
                    found = self._prepare_topics(admin)
                except LogUnavailableError as error:
                    self._status.set_waiting("Kafka", str(error))
                    backoff.wait(self._stopping)
                else:
                    self._status.clear_waiting("Kafka")
                    return found
        return None

    def reader(self, starts: Mapping[TopicPartition, int], fetch_bytes_max: int) -> LogReader:
        """A reader for one task. Raises LogError; LogUnavailableError at once if Kafka is unavailable."""
        return LogReader(
            self._settings.kafka_connection,
            starts,
            frame_bytes_max=self._settings.frame_bytes_max,
            fetch_bytes_max=fetch_bytes_max,
            on_wait=lambda why: self._status.set_waiting("Kafka", why),
        )

    def subscriber_reader(self, starts: Mapping[TopicPartition, int]) -> LogReader:
        """A reader for one subscriber. Raises as `reader` does."""
        return LogReader(
            self._settings.kafka_connection,
            starts,
            frame_bytes_max=self._settings.frame_bytes_max,
            fetch_bytes_max=self._settings.receiver_subscriber_bytes_max,
        )

    def writer(self) -> LogWriter:
        """A writer for the dead letters of one external system. Raises LogUnavailableError if Kafka is unavailable."""
        return LogWriter(
            self._settings.kafka_connection,
            frame_bytes_max=self._settings.frame_bytes_max,
            buffer_bytes_max=_DEAD_LETTERS_BYTES_MAX,
        )

    def admin(self, *, answer_wait_s_max: float = 10.0, topics_known_s: float = 0.0) -> LogAdmin:
        """An admin client for one thread. Does not connect yet. See LogAdmin."""
        return LogAdmin(
            self._settings.kafka_connection,
            answer_wait_s_max=answer_wait_s_max,
            topics_known_s=topics_known_s,
        )

    def _prepare_topics(self, admin: LogAdmin) -> dict[SinkPartition, int]:
        settings = self._settings
        admin.wait(_WAIT_S, lambda why: self._status.set_waiting("Kafka", why))
        prepare_topics(
            admin,
            settings.kafka_connection,
            self._plan.application,
            self._plan.topics,
            partitions=settings.partitions,
            replication=settings.replication,
            frame_bytes_max=settings.frame_bytes_max,
        )
        sinks = {sink_format.topic: sink for sink, sink_format in self._formats.items()}
        found = admin.beginnings(sinks)
        return {
            SinkPartition(sinks[topic], partition): offset for (topic, partition), offset in found.items()
        }
