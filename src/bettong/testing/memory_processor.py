"""All partitions of an application in memory: records in, their output on to the next stages and to sinks.

    append(record) -> its partition folds it -> records of a stage's topic: appended there, in turn
                                             -> records of a sink's topic: delivered, except duplicates

Records are folded one after the other, in the order in which they were appended anywhere.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from enum import Enum
from functools import partial
from typing import Any

from bettong.application.plan import Plan
from bettong.delivery import DeliveryTable, Verdict
from bettong.errors import PoisonError
from bettong.frames.columns import Columns
from bettong.frames.frame import Frame, FrameKind, decode
from bettong.identifiers import PartitionId, TopicPartition
from bettong.schema.json_values import text_of
from bettong.schema.schema import Schema
from bettong.testing.memory_partition import MemoryPartition
from bettong.testing.outcome import DeadMessage
from bettong.topics import dead_letter_topic, sink_topic, stage_topic
from bettong.v1.frame_pb2 import DeadLetter
from bettong.worker.partition import Assignment
from bettong.worker.references.versions import ReferenceTables, StoredVersions
from bettong.worker.stage_program import StageProgram

# The default of `ServiceSettings.frame_bytes_max`.
FRAME_BYTES_MAX = 4 * 1024 * 1024


class AtEachRecord(Enum):
    """What happens before each record of each partition; see `Moment`.

    SAVE: before every second one its worker saves and continues, before the others it crashes. TWICE: the record comes
    twice.
    """

    CRASH = "CRASH"
    RESTORE = "RESTORE"
    SAVE = "SAVE"
    TWICE = "TWICE"

    def __repr__(self) -> str:
        return f"AtEachRecord.{self.value}"


class MemoryProcessor:
    """Every partition of every stage, and their sinks."""

    def __init__(
        self,
        plan: Plan,
        programs: Mapping[str, StageProgram],
        partitions: int,
        at_each_record: AtEachRecord | None,
        references: StoredVersions,
    ) -> None:
        self.outputs: dict[str, list[Any]] = {sink.name: [] for sink in plan.sinks}
        self.dead_letters: list[DeadMessage] = []
        self.stopped: str | None = None
        self.partitions = {
            PartitionId(stage.name, partition): MemoryPartition(
                programs[stage.name],
                Assignment(plan.application, partition, partitions, FRAME_BYTES_MAX),
                partial(ReferenceTables, references),
            )
            for stage in plan.stages
            for partition in range(partitions)
        }
        self._at_each_record = at_each_record
        self._stages = {stage_topic(plan.application, stage.name): stage.name for stage in plan.stages}
        self._sinks = {sink_topic(plan.application, sink.name): sink.name for sink in plan.sinks}
        self._dead_letter_topic = dead_letter_topic(plan.application)
        self._schemas: dict[int, Schema] = {
            output.schema.fingerprint: output.schema for stage in plan.stages for output in stage.outputs
        }
        self._delivery: dict[TopicPartition, DeliveryTable] = {}
        self._waiting: deque[tuple[str, int, bytes]] = deque()

    def append(self, topic: str, partition: int, value: bytes) -> None:
        """Appends a record to a topic, and folds until no record is left. Does nothing once a partition has stopped."""
        self._waiting.append((topic, partition, value))
        if self._at_each_record is AtEachRecord.TWICE:
            self._waiting.append((topic, partition, value))
        while self._waiting and self.stopped is None:
            self._take(*self._waiting.popleft())

    def crash(self) -> None:
        """Kills every worker. Does nothing once a partition has stopped."""
        for partition in self.partitions.values() if self.stopped is None else ():
            partition.crash()

    def restore(self) -> None:
        """Every worker saves its states, and a new one restores them. Does nothing once a partition has stopped."""
        for partition in self.partitions.values() if self.stopped is None else ():
            partition.restore()

    def save(self) -> None:
        """Every worker saves its states, and continues. Does nothing once a partition has stopped."""
        for partition in self.partitions.values() if self.stopped is None else ():
            partition.save()

    def _take(self, topic: str, partition: int, value: bytes) -> None:
        if topic not in self._stages:
            self._deliver(topic, partition, value)
            return
        memory = self.partitions[PartitionId(self._stages[topic], partition)]
        if self._at_each_record is AtEachRecord.CRASH:
            memory.crash()
        elif self._at_each_record is AtEachRecord.RESTORE:
            memory.restore()
        elif self._at_each_record is AtEachRecord.SAVE and memory.worker.next_offset % 2:
            memory.save()
        elif self._at_each_record is AtEachRecord.SAVE:
            memory.crash()
        try:
            records = memory.fold(value)
        except PoisonError as error:
            self.stopped = str(error)
            return
        times = 2 if self._at_each_record is AtEachRecord.TWICE else 1
        for record in records:
            self._waiting += [(record.topic, record.partition, record.value)] * times

    def _deliver(self, topic: str, partition: int, value: bytes) -> None:
        frame = decode(value)
        if frame.kind is not FrameKind.DATA:
            return
        table = self._delivery.setdefault(TopicPartition(topic, partition), DeliveryTable())
        verdict = table.take(
            frame.origin, sequence=frame.sequence, previous=frame.previous, now_ns=frame.ingest_ns
        )
        if verdict is not Verdict.TAKE:
            return
        if topic == self._dead_letter_topic:
            self.dead_letters += map(_dead_message, frame.rows or ())
        else:
            self.outputs[self._sinks[topic]] += self._messages(frame)

    def _messages(self, frame: Frame) -> list[Any]:
        """The messages of a sink's frame: objects, or the bytes of its encoder."""
        if frame.columns is None:
            return list(frame.rows or ())
        return Columns.of_payload(self._schemas[frame.schema], frame.columns).messages()


def _dead_message(row: bytes) -> DeadMessage:
    dead_letter = DeadLetter.FromString(row)
    return DeadMessage(
        dead_letter.computation,
        dead_letter.reason,
        text_of(dead_letter.message),
        tuple(dead_letter.traceback),
    )
