"""All partitions of all stages of an application, in memory: what one writes is folded at once by who reads it."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Any

from bettong.application.plan import Plan
from bettong.frames.columns import Columns
from bettong.frames.frame import FrameKind, decode, tick_record
from bettong.identifiers import PartitionId
from bettong.topics import dead_letter_topic, sink_topic, stage_of_topic, stage_topic
from bettong.worker.partition import Assignment, PartitionWorker
from bettong.worker.stage_program import program
from tests.samples.worker import FRAME_BYTES_MAX


class RunningStages:
    """`delivered`: by sink, its messages in the order in which they came. `dead_letters`: the frames of them."""

    def __init__(self, planned: Plan, partitions: int) -> None:
        self.delivered: defaultdict[str, list[Any]] = defaultdict(list)
        self.dead_letters: list[bytes] = []
        self.workers: dict[PartitionId, PartitionWorker] = {}
        self._plan = planned
        self._sinks = {sink_topic(planned.application, sink.name): sink for sink in planned.sinks}
        for stage in planned.stages:
            ready = program(stage, compiled=False)
            for partition in range(partitions):
                of = Assignment(planned.application, partition, partitions, FRAME_BYTES_MAX)
                self.workers[PartitionId(stage.name, partition)] = PartitionWorker(ready, of)

    def fold(self, topic: str, partition: int, value: bytes) -> None:
        """A record, and all that it leads to."""
        ahead = deque([(topic, partition, value)])
        while ahead:
            topic, partition, value = ahead.popleft()
            if topic in self._sinks:
                self._deliver(topic, value)
            elif topic == dead_letter_topic(self._plan.application):
                self.dead_letters.append(value)
            else:
                worker = self.workers[PartitionId(stage_of_topic(self._plan.application, topic), partition)]
                found = worker.fold(worker.next_offset, value)
                ahead += [(each.topic, each.partition, each.value) for each in found]

    def fold_ticks(self, log_ns: int) -> int:
        """Gives a TICK to each partition in which something is due by then, as the processor does; to how many."""
        due = [
            key
            for key, worker in self.workers.items()
            if worker.due_ns is not None and worker.due_ns <= log_ns
        ]
        for stage, partition in due:
            self.fold(stage_topic(self._plan.application, stage), partition, tick_record(stage, log_ns))
        return len(due)

    def _deliver(self, topic: str, value: bytes) -> None:
        sink, frame = self._sinks[topic], decode(value)
        if frame.kind is FrameKind.DATA:
            assert frame.columns is not None
            schema = sink.parent.one_schema(sink.name)
            self.delivered[sink.name] += Columns.of_payload(schema, frame.columns).messages()
