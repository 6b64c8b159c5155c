"""Reads a range of a stage's log again, to rebuild a state that no store holds."""

from collections.abc import Iterator

from bettong.config.connection_settings import KafkaConnection
from bettong.edges.kafka_log import LogAdmin, LogReader, Record
from bettong.identifiers import TopicPartition

# Small enough to stay well within a worker's memory, large enough to keep the broker busy.
_RECORDS_MAX = 500
_POLL_MS = 1000


class Replay:
    """Reads the log for a replay. Connects only when it is used, as most batches do not need it."""

    def __init__(self, kafka: str | KafkaConnection, *, frame_bytes_max: int) -> None:
        self._kafka = kafka
        self._frame_bytes_max = frame_bytes_max

    def log_start(self, log: TopicPartition) -> int:
        """The beginning offset of the log."""
        with LogAdmin(self._kafka) as admin:
            return admin.beginnings([log.topic])[log]

    def records(self, log: TopicPartition, *, first: int, until: int) -> Iterator[Record]:
        """The records from `first` up to but not including `until`, which must exist."""
        with LogReader(self._kafka, {log: first}, frame_bytes_max=self._frame_bytes_max) as reader:
            at = first
            while at < until:
                for record in reader.poll(_POLL_MS, _RECORDS_MAX):
                    if record.offset >= until:
                        return
                    yield record
                    at = record.offset + 1
