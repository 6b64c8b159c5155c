"""Slots of a resident processor as threads: the real loop, a real Kafka, a real Redis, no Spark."""

import itertools
import tempfile
import threading
import time
from contextlib import closing
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import structlog

import bettong
from bettong import metrics
from bettong.application.plan import Plan, plan
from bettong.clocks import CheckedClock
from bettong.edges.exclusion_log import ExclusionLog
from bettong.edges.kafka_log import LogAdmin, LogReader, LogWriter, Record
from bettong.edges.redis_store import LiveMetrics, RedisSnapshots, RedisStore
from bettong.edges.redis_store.membership import RedisMembership, SlotAssignment, Task
from bettong.edges.snapshot_stores import reference_store
from bettong.frames.columns import Columns
from bettong.frames.frame import Frame, decode, encode
from bettong.identifiers import Origin, PartitionId, SequenceNumber, TopicPartition
from bettong.snapshots.store import SnapshotStore
from bettong.topics import sink_topic, stage_topic
from bettong.worker.partition import Assignment, PartitionWorker
from bettong.worker.references.versions import ReferenceTables
from bettong.worker.stage_program import program
from bettong_processor.crashes.guard import Guard
from bettong_processor.crashes.marks import Marks
from bettong_processor.programs import Programs
from bettong_processor.reporting import PartitionMetrics
from bettong_processor.resident.heartbeat import Heartbeat
from bettong_processor.resident.loop import OUTPUT_BYTES_MAX, Intervals, Loop
from bettong_processor.restoring import Restoring, WorkerLimits
from tests.integration.log_parts import FRAME_BYTES_MAX
from tests.samples.kept_kernels import kept_kernels
from tests.waiting import eventually

PARTITIONS = 4
TTL_MS = 600


@dataclass(slots=True)
class Number:
    """What the log holds."""

    name: str
    value: int


@dataclass(slots=True)
class Sum:
    """What is kept, and put out."""

    total: int = 0


def add(number: Number, kept: Sum) -> Sum:
    """Adds up; a poisoned number raises."""
    kept.total += 100 // number.value
    return Sum(kept.total)


def application(name: str, ttl: timedelta | None = None) -> bettong.Application:
    """Sums by name."""
    app = bettong.Application(name)
    numbers = app.source("numbers", schema=Number, key="name")
    numbers.stateful(add, state=Sum, on_error="stop", ttl=ttl).sink("sums")
    return app


@dataclass
class Slot:
    """One slot at work. `error` is what ended it."""

    number: int
    thread: threading.Thread | None = None
    error: BaseException | None = None
    killed: threading.Event = field(default_factory=threading.Event)

    def ended(self) -> BaseException | None:
        """Waits for its end; what it raised."""
        assert self.thread is not None
        self.thread.join(30)
        assert not self.thread.is_alive()
        return self.error


class Killed(Exception):
    """A task that dies in the middle: nothing is drained, nothing revoked."""


class Group:
    """The membership of some slots, and what they are assigned. Two groups know nothing of each other."""

    def __init__(self, store: RedisStore, *stages: str) -> None:
        self.membership = RedisMembership(store, ttl_ms=TTL_MS)
        self.run = "run-1"
        self._incarnations = itertools.count(self.membership.begin_run(self.run))
        self._stages = stages
        self._epoch = 0

    def task(self, slot: int) -> Task:
        """The next task of a slot."""
        return Task(run=self.run, slot=slot, incarnation=next(self._incarnations))

    def assign(self, slots: dict[int, list[int]], *, stop: bool = False) -> None:
        """Publishes an assignment: partitions by slot, those of all stages."""
        self._epoch += 1
        pairs = [(each, slot) for slot, numbers in slots.items() for each in numbers]
        partitions = {PartitionId(stage, each): slot for stage in self._stages for each, slot in pairs}
        assignment = SlotAssignment(self._epoch, partitions, stop)
        assert self.membership.publish_assignment(self.run, assignment)

    def holders(self) -> dict[int, int]:
        """Which slot holds which partition now."""
        seen = self.membership.read_members(self.run, range(10)).holders
        return {each.partition: slot for each, slot in seen.items()}

    def await_holders(self, wanted: dict[int, int]) -> None:
        """Waits until just these hold just that, of all stages."""
        held = {PartitionId(stage, each): slot for stage in self._stages for each, slot in wanted.items()}
        eventually(
            lambda: self.membership.read_members(self.run, range(10)).holders == held, what=f"{wanted} hold"
        )


def programs_of(planned: Plan, *, compiled: bool) -> Programs:
    """A plan with its stages ready to run."""
    return Programs(
        planned,
        {stage.name: program(stage, compiled=compiled, cache=kept_kernels()) for stage in planned.stages},
    )


class World:
    """A log, its stores, slots, and what the log of results holds."""

    def __init__(
        self,
        name: str,
        kafka: str,
        redis: str,
        programs: Programs | None = None,
        *,
        partitions: int = PARTITIONS,
    ) -> None:
        self.name, self.kafka, self.partitions = name, kafka, partitions
        self.programs = programs or programs_of(plan(application(name)), compiled=False)
        planned = self.programs.plan
        self.stage = planned.stages[0]
        self.source, self.sink = stage_topic(name, self.stage.name), sink_topic(name, "sums")
        self.redis_url = redis
        self.redis = RedisStore(redis, name)
        self.store: SnapshotStore = RedisSnapshots(self.redis)
        self.kept_tables = reference_store("redis", name, self.redis)
        self.references = ReferenceTables(self.kept_tables)
        self.metrics = LiveMetrics(self.redis)
        self.group = Group(self.redis, *self.programs.stages)
        self.sequences = [itertools.count(1) for _ in range(partitions)]
        self.appended = [0] * partitions
        with LogAdmin(kafka) as admin:
            admin.create_topics(
                planned.topics,
                partitions=partitions,
                replication=1,
                frame_bytes_max=FRAME_BYTES_MAX,
            )
        self.writer = LogWriter(kafka, frame_bytes_max=FRAME_BYTES_MAX, buffer_bytes_max=1 << 24)
        self.slots: list[Slot] = []
        self.folder = tempfile.TemporaryDirectory(prefix="bettong-marks-")
        self.output_bytes_max = OUTPUT_BYTES_MAX
        self.machine_ns = time.time_ns

    def close(self) -> None:
        """Ends the slots that are left."""
        self.group.assign({}, stop=True)
        for slot in self.slots:
            slot.ended()
        self.writer.close()
        self.redis.close()
        self.folder.cleanup()

    def feed(
        self, partition: int, count: int, value: int = 1, size: int = 1, ingest_ns: int | None = None
    ) -> None:
        """Appends frames to one partition, `size` messages each, taken in now unless `ingest_ns` says when."""
        entry = self.stage.inputs[0]
        for _ in range(count):
            sequence = next(self.sequences[partition])
            columns = Columns.of_messages(entry.schema, [Number("m", value)] * size)
            frame = Frame(
                origin=Origin(f"{entry.stream}/client"),
                sequence=SequenceNumber(sequence),
                previous=SequenceNumber(sequence - 1),
                count=size,
                schema=entry.schema.fingerprint,
                ingest_ns=time.time_ns() if ingest_ns is None else ingest_ns,
                columns=columns.payload(),
            )
            self.writer.append(TopicPartition(self.source, partition), encode(frame), lambda _: None)
        self.appended[partition] += count
        self.writer.flush(30)
        assert self.writer.failure is None

    def start(
        self,
        number: int,
        *,
        snapshot_s: float = 0.05,
        writer: LogWriter | None = None,
        group: Group | None = None,
    ) -> Slot:
        """Starts the task of a slot; `writer`: of its output, another than its own."""
        slot = Slot(number)
        work = (slot, snapshot_s, writer, group or self.group)
        slot.thread = threading.Thread(target=self._work, args=work, daemon=True)
        self.slots.append(slot)
        slot.thread.start()
        return slot

    def _work(self, slot: Slot, snapshot_s: float, writer: LogWriter | None, group: Group) -> None:
        log = structlog.get_logger()
        partition_metrics = PartitionMetrics(self.metrics, time.monotonic, log, 30)
        exclusions = ExclusionLog(self.kafka, self.name, frame_bytes_max=FRAME_BYTES_MAX)
        own = LogWriter(self.kafka, frame_bytes_max=FRAME_BYTES_MAX, buffer_bytes_max=1 << 26)
        with (
            closing(exclusions),
            own,
            Reader(slot, self.kafka) as reader,
            Heartbeat(group.membership, group.task(slot.number), log) as heartbeat,
        ):
            try:
                Loop(
                    Restoring(
                        self.programs, WorkerLimits(self.partitions, FRAME_BYTES_MAX), log, self.references
                    ),
                    self.store,
                    heartbeat=heartbeat,
                    reader=reader,
                    writer=writer or own,
                    metrics=partition_metrics,
                    guard=Guard(
                        Marks(Path(self.folder.name), self.partitions),
                        exclusions,
                        partition_metrics,
                        log,
                    ),
                    intervals=Intervals(snapshot_s, 0.05),
                    clock=CheckedClock(self.machine_ns, log),
                    log=log,
                    output_bytes_max=self.output_bytes_max,
                ).fold_until_stopped()
            except BaseException as error:  # noqa: BLE001 - what ended it is what the test asks for
                slot.error = error

    def kill(self, slot: Slot) -> None:
        """Ends a slot at its next poll, as a lost task: it says nothing, and saves nothing."""
        slot.killed.set()
        assert isinstance(slot.ended(), Killed)

    def saved(self, partition: int) -> int:
        """The offset of the newest snapshot."""
        found = self.store.increments(PartitionId(self.stage.name, partition))
        return found[-1].offset if found else 0

    def offset(self, partition: int = 0) -> int:
        """How far a partition is folded, by its live metrics."""
        metric_values = self.metrics.partitions().get(PartitionId(self.stage.name, partition), {})
        return int(metric_values.get(metrics.OFFSET.name, 0))

    def await_saved(self, partition: int) -> None:
        """Waits until all that was fed is in a snapshot."""
        wanted = self.appended[partition]
        eventually(
            lambda: self.saved(partition) == wanted, what=f"partition {partition} is saved at {wanted}"
        )

    def results(self, partition: int) -> list[tuple[int, int, bytes | None]]:
        """Sequence, previous and content of each frame of results, as they lie in the log."""
        with LogAdmin(self.kafka) as admin:
            end = admin.ends([self.sink])[TopicPartition(self.sink, partition)]
        frames: list[Frame] = []
        with LogReader(
            self.kafka, {TopicPartition(self.sink, partition): 0}, frame_bytes_max=FRAME_BYTES_MAX
        ) as reader:
            while len(frames) < end:
                frames += [decode(record.value) for record in reader.poll(200, 1000)]
        return [(frame.sequence, frame.previous, frame.columns) for frame in frames]

    def taken(self, partition: int) -> list[tuple[int, int, bytes | None]]:
        """The frames of results that the delivery rule takes; a duplicate must be just the same."""
        found: dict[int, tuple[int, int, bytes | None]] = {}
        for frame in self.results(partition):
            assert found.setdefault(frame[0], frame) == frame
        return [found[sequence] for sequence in sorted(found)]

    def expected(self, partition: int) -> list[tuple[int, int, bytes | None]]:
        """The frames of a fold without any interruption."""
        assignment = Assignment(self.name, partition, self.partitions, FRAME_BYTES_MAX)
        worker = PartitionWorker(self.programs.stages[self.stage.name], assignment)
        frames: list[Frame] = []
        starts = {TopicPartition(self.source, partition): 0}
        with LogReader(self.kafka, starts, frame_bytes_max=FRAME_BYTES_MAX) as reader:
            while worker.next_offset < self.appended[partition]:
                for record in reader.poll(200, 1000):
                    frames += [decode(each.value) for each in worker.fold(record.offset, record.value)]
        return [(frame.sequence, frame.previous, frame.columns) for frame in frames]

    def await_results(self, partition: int) -> None:
        """Waits until the results are those of a fold without any interruption."""
        wanted = self.expected(partition)
        eventually(lambda: len(self.taken(partition)) >= len(wanted), what=f"{len(wanted)} results")
        assert self.taken(partition) == wanted


class Reader(LogReader):
    """A reader whose slot can be killed."""

    def __init__(self, slot: Slot, kafka: str) -> None:
        super().__init__(kafka, {}, frame_bytes_max=FRAME_BYTES_MAX, counts_ahead=True)
        self._slot = slot

    def poll(self, timeout_ms: int, records_max: int) -> list[Record]:
        """See LogReader."""
        if self._slot.killed.is_set():
            raise Killed
        return super().poll(timeout_ms, records_max)
