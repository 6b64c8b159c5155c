"""A partition under each of the schedules, in virtual time, over a log in memory: for tests of time that passes.

The fold, what decides about TICKs, and the driver's progress are the real ones. Of the schedules only how long they
take is made up: a slot looks every 20 ms, a micro-batch takes 0.3 s, and the driver looks at progress every 0.5 s.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, cast

import structlog

import bettong
from bettong import Application
from bettong.clocks import CheckedClock
from bettong.edges.kafka_log import LogWriter, Record
from bettong.errors import LogError, LogUnavailableError
from bettong.frames.frame import FrameKind, decode
from bettong.identifiers import PartitionId, TopicPartition
from bettong.worker.partition import PartitionWorker
from bettong_processor.micro_batch.ticking import Ticking
from bettong_processor.progress import Progress
from bettong_processor.reporting import metrics_of
from bettong_processor.resident.active_partition import ActivePartition, OutputBuffer
from bettong_processor.ticks import TICK_S_MIN
from tests.samples.worker import data, python, worker

TOPIC = "meters.stage.in"
PARTITION = TopicPartition(TOPIC, 0)
OWN = PartitionId("in", 0)
STAGES = {TOPIC: "in"}
SECOND_NS = 1_000_000_000
BEGIN_NS = 1_700_000_000 * SECOND_NS
TTL_S = 60
# How late what is due happens at the latest; see `late_s_max` for what is due right after a TICK was written.
LATE_S_MAX = 1.0
SILENT = structlog.wrap_logger(structlog.ReturnLogger(), processors=[])


@dataclass
class Note:
    key: bettong.u32


@dataclass
class Kept:
    count: int = 0


def keep(note: Note, kept: Kept) -> Note | None:
    kept.count += 1
    return None


TTL = timedelta(seconds=TTL_S)


def fresh(ttl: timedelta | None = TTL) -> PartitionWorker:
    app = Application("meters")
    app.source("in", schema=Note, key="key").stateful(keep, state=Kept, ttl=ttl).sink("out")
    return worker(python(app))


@dataclass
class Log:
    """One partition, and a LogWriter to it: each value is answered once, with its offset, or with an error.

    It answers when `away` ends.
    """

    records: list[bytes] = field(default_factory=list)
    away: bool = False
    failure: LogError | None = None
    _unanswered: list[tuple[bytes, Callable[[int | LogError], None]]] = field(default_factory=list)

    def append(
        self,
        to: TopicPartition,
        value: bytes,
        on_done: Callable[[int | LogError], None],
        *,
        times: bytes = b"",
        traceparent: bytes = b"",
    ) -> None:
        assert not times, "nothing is put out but ticks"
        assert not traceparent
        assert to == PARTITION
        if self.failure is not None:
            raise self.failure
        self._unanswered.append((value, on_done))
        self.answer()

    def answer(self) -> None:
        while self._unanswered and not self.away:
            value, on_done = self._unanswered.pop(0)
            self.records.append(value)
            on_done(len(self.records) - 1)

    def fail(self) -> None:
        """The delivery timeout is over."""
        self.failure = LogUnavailableError("no answer from Kafka")
        while self._unanswered:
            self._unanswered.pop(0)[1](self.failure)

    def close(self, _timeout_s: float = 0.0) -> None:
        self.fail()

    @property
    def ticks(self) -> int:
        return sum(decode(each).kind is FrameKind.TICK for each in self.records)

    # Where it begins and ends, as LogAdmin tells.

    def ends(self, _: object) -> Mapping[TopicPartition, int]:
        if self.away:
            raise LogUnavailableError("Kafka at x does not answer")
        return {PARTITION: len(self.records)}

    def beginnings(self, _: object) -> Mapping[TopicPartition, int]:
        return {PARTITION: 0}


class Resident:
    """A slot that holds the partition."""

    step_s = 0.02
    late_s_max = TICK_S_MIN + 3 * step_s

    def __init__(self, log: Log, now_ns: Callable[[], int], ttl: timedelta | None) -> None:
        self.worker = fresh(ttl)
        self._log = log
        self._clock = CheckedClock(now_ns, SILENT)
        self.redis_ns = now_ns
        self._buffer = OutputBuffer()
        self._partition = ActivePartition(
            PARTITION, self.worker, fold=self.worker.fold, save=PartitionWorker.increment, due_s=0.0
        )

    def step(self, now_s: float) -> None:
        """Polls, folds what came, and attends to what is due."""
        writer = cast("LogWriter", self._log)
        for offset in range(self.worker.next_offset, len(self._log.records)):
            record = Record(*PARTITION, offset, self._log.records[offset])
            self._partition.fold_record(record, writer, self._buffer)
        self._partition.tick_if_due(self._clock.now_ns(self.redis_ns()), writer, self._buffer, now_s)


class MicroBatch:
    """A driver, and a query whose batches follow one another."""

    step_s = 0.1
    # A batch that folds the TICK, a look at progress, another batch, and a step before each.
    late_s_max = 0.3 + 0.5 + 0.3 + 4 * step_s

    def __init__(self, log: Log, now_ns: Callable[[], int], ttl: timedelta | None) -> None:
        self.worker = fresh(ttl)
        self.reported: dict[PartitionId, dict[str, str]] = {}
        self._log = log
        self.redis_ns = now_ns
        self.progress = Progress(
            cast("Any", log),
            cast("Any", self),
            STAGES,
            partitions=1,
            report_interval_s=0.5,
            clock=lambda: 0.0,
            logger=SILENT,
            committed=lambda: {PARTITION: self.worker.next_offset},
        )
        self._machine_ns = now_ns
        self.ticking = self.ticking_of(STAGES)
        self._checked_s = self._batch_begun_s = float("-inf")
        self._batch_until: int | None = None

    def ticking_of(self, stages: Mapping[str, str], awaited: Collection[str] = ()) -> Ticking:
        """What writes TICKs, where something may be due in these stages."""
        return Ticking(
            stages,
            self.progress.idle,
            awaited=awaited,
            clock=CheckedClock(self._machine_ns, SILENT),
            redis=cast("Any", self),
            connect=lambda: cast("LogWriter", self._log),
            log=SILENT,
        )

    def time_ns(self) -> int:
        return self.redis_ns()

    def partitions(self) -> Mapping[PartitionId, Mapping[str, str]]:
        return self.reported

    def step(self, now_s: float) -> None:
        """What has gone on until now: a batch that ends, one that begins, a look at progress, and at what is due."""
        if self._batch_until is not None and now_s - self._batch_begun_s >= 0.3:
            for offset in range(self.worker.next_offset, self._batch_until):
                self.worker.fold(offset, self._log.records[offset])
            self.reported[OWN] = {name: str(value) for name, value in metrics_of(self.worker).items()}
            self._batch_until = None
        if self._batch_until is None and len(self._log.records) > self.worker.next_offset:
            self._batch_begun_s, self._batch_until = now_s, len(self._log.records)
        if now_s - self._checked_s >= 0.5:
            self._checked_s = now_s
            self.progress.check()
        self.ticking.write_due(now_s)


Schedule = Resident | MicroBatch


class World:
    """One schedule, and virtual time."""

    def __init__(self, schedule: type[Schedule], ttl: timedelta | None = TTL) -> None:
        self.log = Log()
        self.now_s = 0.0
        self.machine_ahead_s = 0.0
        self.run: Schedule = schedule(self.log, self.machine_ns, ttl)
        self.run.redis_ns = self.true_ns
        self._sequence = 0

    def true_ns(self) -> int:
        return BEGIN_NS + round(self.now_s * SECOND_NS)

    def machine_ns(self) -> int:
        return self.true_ns() + round(self.machine_ahead_s * SECOND_NS)

    def send(self, *keys: int) -> None:
        """A frame of a client, whose sender's clock is right."""
        self._sequence += 1
        value = data("in/x", self._sequence, [Note(key) for key in keys], ingest_ns=self.true_ns())
        self.log.append(PARTITION, value, lambda _: None)

    def pass_time(self, until_s: float) -> None:
        """As long as that, in the steps of the schedule."""
        while self.now_s < until_s:
            self.now_s = round(self.now_s + self.run.step_s, 6)
            self.run.step(self.now_s)
