"""Follows the dead letters of an application, counted by reason."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import replace

from bettong.closing import Closing
from bettong.config.connection_settings import KafkaConnection
from bettong.edges.kafka_log import LogAdmin, LogReader, Record
from bettong.errors import LogError
from bettong.frames.frame import Frame, FrameKind
from bettong.identifiers import Origin, SequenceNumber
from bettong.inspection.dead_letters import Found
from bettong.inspection.live.dead_letters import dead_letters_of, readable
from bettong.inspection.reason_counts import ReasonCounts, counted
from bettong.topics import dead_letter_topic

# The newest records of an existing topic that are read: at most some seconds' work.
_RECORDS_MAX = 10_000
_POLL_RECORDS_MAX = 500
_ORIGINS_MAX = 100_000
_ANSWER_WAIT_S_MAX = 1.5


class DeadLetterTail(Closing):
    """Counts dead letters: those of the newest 10,000 records, then all new ones. For one thread.

    A frame that was written again counts once, as long as its origin is among the last 100,000. Where older records
    were not read, any dead letter may be a copy of one there.
    """

    def __init__(self, kafka: KafkaConnection, application: str, *, frame_bytes_max: int) -> None:
        """Does not connect yet."""
        self._kafka = kafka
        self._topic = dead_letter_topic(application)
        self._frame_bytes_max = frame_bytes_max
        self._reader: LogReader | None = None
        self._counts = ReasonCounts()
        self._begun_late: set[int] = set()  # partitions whose oldest records were not read
        self._highest: OrderedDict[tuple[int, Origin], SequenceNumber] = OrderedDict()

    def count(self, seconds: float) -> ReasonCounts:
        """The counts after reading for about `seconds`. Raises LogError; the next call continues, or starts over."""
        try:
            reader = self._reader or self._begun()
            until_s = time.monotonic() + seconds
            while (left_s := until_s - time.monotonic()) > 0:
                records = reader.poll(max(1, round(1000 * min(left_s, 0.2))), _POLL_RECORDS_MAX)
                self._counts = counted(self._counts, self._new(records))
                if not records:
                    break
        except LogError:
            self.close()
            raise
        return self._counts

    def close(self) -> None:
        """Closes the connection, and forgets the counts: the next call starts over."""
        if self._reader is not None:
            self._reader.close()
        self._reader, self._counts = None, ReasonCounts()
        self._highest.clear()

    def _begun(self) -> LogReader:
        with LogAdmin(self._kafka, answer_wait_s_max=_ANSWER_WAIT_S_MAX) as admin:
            firsts, ends = admin.beginnings([self._topic]), admin.ends([self._topic])
        each_max = max(1, _RECORDS_MAX // max(1, len(firsts)))
        starts = {id_: max(first, ends[id_] - each_max) for id_, first in firsts.items()}
        self._begun_late = {id_.partition for id_, first in firsts.items() if starts[id_] > first}
        self._counts = ReasonCounts(skipped=sum(starts[id_] - first for id_, first in firsts.items()))
        self._reader = LogReader(
            self._kafka, starts, frame_bytes_max=self._frame_bytes_max, fetch_bytes_max=4 * 1024 * 1024
        )
        return self._reader

    def _new(self, records: list[Record]) -> Iterator[Found]:
        for record in records:
            for frame in readable(record):
                if self._is_new(record, frame):
                    late = record.partition in self._begun_late
                    yield from (replace(each, may_be_copy=late) for each in dead_letters_of(record, frame))

    def _is_new(self, record: Record, frame: Frame) -> bool:
        key = (record.partition, frame.origin)
        if frame.kind is not FrameKind.DATA or frame.sequence <= self._highest.get(key, 0):
            return False
        self._highest[key] = frame.sequence
        self._highest.move_to_end(key)
        if len(self._highest) > _ORIGINS_MAX:
            self._highest.popitem(last=False)
        return True
