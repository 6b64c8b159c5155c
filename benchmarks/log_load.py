"""Load that goes straight into a stage's log: numbered as a sender numbers it, appended, and waited for."""

import itertools
import time
from collections.abc import Iterable, Iterator

from benchmarks.workload import log_frame
from bettong.application.nodes.source import Source
from bettong.edges.kafka_log import LogReader, LogWriter, Record
from bettong.errors import LogError
from bettong.frames.columns import Columns
from bettong.identifiers import TopicPartition
from bettong.lab.target.folding import S_MAX
from bettong.routing import partitions_of, split


class Splitter:
    """Splits columns by key, as the sender does it, into frames that are numbered on from call to call."""

    def __init__(self, partitions: int) -> None:
        self._partitions = partitions
        self._sequence = 0
        self._last: dict[tuple[str, int], int] = {}

    def frames(self, source: Source, columns: Columns, *, key: str) -> Iterator[tuple[int, bytes]]:
        """(partition, frame), at most one of each partition."""
        self._sequence += 1
        division = split(partitions_of(columns, key, self._partitions), self._partitions)
        ordered = columns.take(division.order)
        for partition, (start, stop) in enumerate(itertools.pairwise(division.bounds)):
            if start < stop:
                at = (source.name, partition)
                frame = log_frame(
                    source,
                    ordered.slice(start, stop),
                    sequence=self._sequence,
                    previous=self._last.get(at, 0),
                    now_ns=time.time_ns(),
                )
                self._last[at] = self._sequence
                yield partition, frame


class Feeder:
    """Appends to one topic; `check` raises what went wrong since."""

    def __init__(self, log: LogWriter, topic: str) -> None:
        self._log = log
        self._topic = topic
        self._faults: list[LogError] = []

    def append(self, frames: Iterable[tuple[int, bytes]]) -> None:
        """Appends each (partition, frame); blocks while the writer's buffer is full."""
        for partition, frame in frames:
            self._log.append(TopicPartition(self._topic, partition), frame, self._note)

    def check(self) -> None:
        """Raises the first LogError."""
        if self._faults:
            raise self._faults[0]

    def _note(self, answer: int | LogError) -> None:
        if isinstance(answer, LogError):
            self._faults.append(answer)


def rounds(reader: LogReader) -> Iterator[list[Record]]:
    """What a reader brings, round by round, maybe nothing; raises when it took too long."""
    deadline = time.monotonic() + S_MAX
    while time.monotonic() < deadline:
        yield reader.poll(200, 1000)
    raise AssertionError(f"not all results within {S_MAX} s")
