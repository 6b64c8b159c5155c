"""What stages leave out of records at which workers died, as records of the log.

Two workers may decide about one record at a time, each for itself: the first one's word in the log counts for both.
Where workers die at the record all the same, a later one adds to it.
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

# One record at a time is written; a broker that restarts takes 4 s.
_BUFFER_BYTES_MAX = 1 << 22
_ANSWER_S_MAX = 30.0
_POLL_MS = 200
_RECORDS_MAX = 500


class ExclusionLog:
    """Of one application. Connects at the first question; safe to use from several threads.

    Raises LogUnavailableError when no broker answers within 30 s, LogError when it refuses or what it has is damaged.
    What it has read is kept: each exclusion costs a worker's life several times, so there are few.
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
        """Those of a partition, by offset; what `refresh` and `append` find comes into the same mapping."""
        return self._found[partition]

    def refresh(self, since_s: float | None = None) -> None:
        """Reads what is new in the log; not if that was done since `since_s`, by the monotonic clock. Blocks."""
        with self._lock:
            if since_s is not None and self._asked_s >= since_s:
                return
            asked_s = time.monotonic()
            ends = {partition: end for (_, partition), end in self._admin.ends([self._topic]).items()}
            self._read(ends)
            self._asked_s = asked_s

    def append(self, partition: PartitionId, exclusion: Exclusion) -> Exclusion:
        """Keeps what was decided, unless something was before; what counts. Blocks until it is durable."""
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
        """Closes the connection. The next question opens another."""
        self._admin.close()

    def _read(self, ends: Mapping[int, int]) -> None:
        """All records of these partitions below their ends. The first of an offset counts, and what adds to it."""
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
                    self._take(record.partition, record.offset, record.value)
                if time.monotonic() > deadline_s:
                    raise LogUnavailableError(
                        f"{self._topic} was not read to its end in {_ANSWER_S_MAX:.0f} s; is Kafka at"
                        f" {self._where.bootstrap} running and reachable?"
                    )

    def _take(self, partition: int, offset: int, value: bytes) -> None:
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
