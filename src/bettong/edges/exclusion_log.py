"""Exclusions (what a stage skips of a record at which workers died), stored as records of the log.

Two workers may decide about one record at the same time: the first decision in the log counts for both. If workers
still die at the record, a later decision extends it.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import Future

from google.protobuf.message import DecodeError

from bettong.config.connection_settings import KafkaConnection
from bettong.edges.kafka_log import LogAdmin, LogReader, LogWriter
from bettong.errors import LogError, LogUnavailableError
from bettong.identifiers import PartitionId, TopicPartition
from bettong.topics import exclusions_topic
from bettong.worker.exclusions import Exclusion, counting, decode_exclusion, encode_exclusion

# One record is written at a time; a broker restarts in 4 s.
_BUFFER_BYTES_MAX = 1 << 22
_ANSWER_S_MAX = 30.0
_POLL_MS = 200
_RECORDS_MAX = 500


class ExclusionLog:
    """The exclusions of one application. Connects when first used; safe to use from several threads.

    Raises LogUnavailableError when no broker answers within 30 s, LogError when it refuses or a record is damaged.
    All exclusions stay in memory: each follows several deaths of workers, so there are few.
    """

    def __init__(self, where: str | KafkaConnection, application: str, *, frame_bytes_max: int) -> None:
        self._where = KafkaConnection.of(where)
        self._topic = exclusions_topic(application)
        self._frame_bytes_max = frame_bytes_max
        self._admin = LogAdmin(self._where)
        self._next: dict[int, int] = {}
        self._found: defaultdict[PartitionId, dict[int, Exclusion]] = defaultdict(dict)
        self._asked_s = float("-inf")
        self._lock = threading.Lock()

    def known(self, partition: PartitionId) -> Mapping[int, Exclusion]:
        """The exclusions of a partition, by offset. `refresh` and `append` add to the same mapping."""
        return self._found[partition]

    def refresh(self, since_s: float | None = None) -> None:
        """Reads new records of the log, unless that was done since `since_s` (monotonic clock). Blocks."""
        with self._lock:
            if since_s is not None and self._asked_s >= since_s:
                return
            asked_s = time.monotonic()
            ends = {partition: end for (_, partition), end in self._admin.ends([self._topic]).items()}
            self._read(ends)
            self._asked_s = asked_s

    def append(self, partition: PartitionId, exclusion: Exclusion) -> Exclusion:
        """Appends a decision; returns the one that counts, which may be an earlier one. Blocks until it is durable."""
        done: Future[int | LogError] = Future()
        with (
            self._lock,
            LogWriter(
                self._where, frame_bytes_max=self._frame_bytes_max, buffer_bytes_max=_BUFFER_BYTES_MAX
            ) as writer,
        ):
            writer.append(
                TopicPartition(self._topic, partition.partition),
                encode_exclusion(partition.stage, exclusion),
                done.set_result,
            )
            writer.flush(_ANSWER_S_MAX)
            answer = done.result(_ANSWER_S_MAX)
            if isinstance(answer, LogError):
                raise answer
            self._read({partition.partition: answer + 1})
        return self._found[partition][exclusion.offset]

    def close(self) -> None:
        """Closes the connection. The next use opens another."""
        self._admin.close()

    def _read(self, ends: Mapping[int, int]) -> None:
        """Reads the partitions to their ends. For each offset the first decision counts, with its extensions."""
        firsts = {TopicPartition(self._topic, each): self._next.get(each, 0) for each in ends}
        firsts = {
            partition: first for partition, first in firsts.items() if first < ends[partition.partition]
        }
        if not firsts:
            return
        deadline_s = time.monotonic() + _ANSWER_S_MAX
        with LogReader(self._where, firsts, frame_bytes_max=self._frame_bytes_max) as reader:
            while any(at < ends[partition] for (_, partition), at in reader.positions().items()):
                for record in reader.poll(_POLL_MS, _RECORDS_MAX):
                    self._apply(record.partition, record.offset, record.value)
                if time.monotonic() > deadline_s:
                    raise LogUnavailableError(
                        f"{self._topic} was not read to its end in {_ANSWER_S_MAX:.0f} s; is Kafka at"
                        f" {self._where.bootstrap} running and reachable?"
                    )

    def _apply(self, partition: int, offset: int, value: bytes) -> None:
        try:
            stage, exclusion = decode_exclusion(value)
        except DecodeError as error:
            raise LogError(
                f"{self._topic}/{partition}: offset {offset} is no exclusion ({error}); has another program written"
                " there? Restore the topic"
            ) from None
        found = self._found[PartitionId(stage, partition)]
        found[exclusion.offset] = counting(found.get(exclusion.offset), exclusion)
        self._next[partition] = offset + 1
