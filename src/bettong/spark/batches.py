"""`bettong.spark.batch`: the results of an application, replayed from its log as a batch job."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import pyarrow as pa

from bettong.application.plan import Plan
from bettong.edges.log_stretch import stretch
from bettong.errors import ApplicationError, FrameError, LogTruncatedError
from bettong.frames.frame import FrameKind, decode
from bettong.garbage import CollectionPaused
from bettong.identifiers import PartitionId, TopicPartition
from bettong.inspection.live.exclusions import exclusions_of
from bettong.inspection.live.stored_references import StoredReferences
from bettong.inspection.states import LogEnds
from bettong.spark.data_frames import of_tasks, require_spark
from bettong.spark.located import LocatedApplication, WhereOptions, located
from bettong.spark.sink_columns import SinkColumns, gathered, sink_named, stages_before
from bettong.topics import dead_letter_topic, sink_topic, stage_topic
from bettong.v1.frame_pb2 import DeadLetter
from bettong.worker.exclusions import Exclusion
from bettong.worker.output.framing import OutputRecord
from bettong.worker.partition import Assignment, PartitionWorker
from bettong.worker.references.versions import ReferenceTables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def batch(
    app: str | Path,
    spark: SparkSession,
    *,
    sinks: Collection[str] | None = None,
    **where: Unpack[WhereOptions],
) -> dict[str, DataFrame]:
    """The results of each sink, or of those in `sinks`, from all records in the log now; by the sink's name.

    Columns: the fields of the sink's messages, `_partition`, `_origin`, `_sequence`, `_index`, and `_taken_in`, when
    the sender took in the message that led to them. Origin, sequence and index are the same as in the application's own
    results and identify a message: each appears once. Within one origin, a partition's messages are ordered by sequence
    and index. A sink with an encoder has one column `message` of bytes; one with several schemas has `type`, and
    `message` as JSON text.

    One task for each partition of each stage that writes to the sink reads the stage's topic from its beginning up to
    its end at the time of this call, and folds it as the processor does: duplicates are skipped, and messages that were
    excluded because they killed workers are excluded again. So today's code of the application processes all messages
    in the log. A stage behind a `key_by` is folded from its own topic, which the processor writes: the latest results
    are there only once the processor has folded both stages so far. A DataFrame folds again with each action: cache it,
    or write it to a table. A task holds the states of its partition in memory.

    `where`: see `bettong.spark`. Raises ApplicationError for an unknown sink; LogTruncatedError where a log does not
    reach back to its beginning; LogError, LocalError and SettingsError where the application is not found. An action
    raises PoisonError as the processor does, and FrameError where the log holds messages of another version.
    """
    require_spark()
    of, plan = located(app, where)
    chosen = [sink_named(plan, name) for name in sinks] if sinks is not None else plan.sinks
    stages = {stage.name for sink in chosen for stage in stages_before(plan, sink)}
    if not stages:
        raise ApplicationError(
            f"application {plan.application!r}: expected a sink, got none; name one in sinks="
        )
    topics = {stage_topic(plan.application, name): name for name in sorted(stages)}
    logs = of.generation(plan, of.logs(list(topics)))
    _check_begins(logs)
    partitions = [PartitionId(topics[each.topic], each.partition) for each in logs]
    exclusions = exclusions_of(plan, of.found.on_this_machine(), partitions)
    found = {}
    for sink in chosen:
        names = {stage.name for stage in stages_before(plan, sink)}
        folds = tuple(
            _Fold(id_, logs[each].end, len(logs) // len(topics), exclusions[id_])
            for each in sorted(logs)
            if (id_ := PartitionId(topics[each.topic], each.partition)).stage in names
        )
        columns = SinkColumns(plan, sink)
        found[sink.name] = of_tasks(spark, len(folds), _SinkRows(of, sink.name, folds), columns.arrow)
    return found


def _check_begins(logs: Mapping[TopicPartition, LogEnds]) -> None:
    """Raises LogTruncatedError where a log was trimmed."""
    if trimmed := [f"{each} begins at offset {log.begin}" for each, log in sorted(logs.items()) if log.begin]:
        more = f", and {len(trimmed) - 1} more do not begin at 0" if len(trimmed) > 1 else ""
        raise LogTruncatedError(
            f"{trimmed[0]}{more}: records before that, of the log or of the time before a repartitioning, are missing,"
            " so results cannot be computed from the beginning. Read the sink's own topic with bettong.spark.stream,"
            " and keep the retention of stage topics unlimited"
        )


@dataclass(frozen=True, slots=True)
class _Fold:
    """What a task folds: the records of a partition, one of `partitions`, below `end`, without the `exclusions`."""

    partition: PartitionId
    end: int
    partitions: int
    exclusions: Mapping[int, Exclusion]


@dataclass(frozen=True, slots=True)
class _SinkRows:
    """The rows of a sink that each of the folds produces, by the fold's number."""

    of: LocatedApplication
    sink: str
    folds: tuple[_Fold, ...]

    def __call__(self, number: int) -> Iterator[pa.RecordBatch]:
        """Runs in a task of Spark."""
        plan = self.of.plan()
        columns = SinkColumns(plan, sink_named(plan, self.sink))
        topic = sink_topic(plan.application, self.sink)
        yield from gathered(
            columns.rows(record.partition, decode(record.value))
            for record in self._folded(plan, self.folds[number])
            if record.topic == topic
        )

    def _folded(self, plan: Plan, fold: _Fold) -> Iterator[OutputRecord]:
        stage, number = fold.partition
        program, found = self.of.program(stage), self.of.found
        assignment = Assignment(plan.application, number, fold.partitions, found.frame_bytes_max)
        references = StoredReferences(plan.application, found.on_this_machine())
        worker = PartitionWorker(program, assignment, ReferenceTables(references))
        worker.exclusions = fold.exclusions
        log = TopicPartition(stage_topic(plan.application, stage), number)
        dead_letters = dead_letter_topic(plan.application)
        records = stretch(found.kafka, {log: 0}, {log: fold.end}, frame_bytes_max=found.frame_bytes_max)
        for record in records:
            with CollectionPaused():
                outputs = worker.fold(record.offset, record.value)
            for output in outputs:
                if output.topic == dead_letters:
                    _check_version(worker, log, record.offset, record.value, output)
                yield output


def _check_version(
    worker: PartitionWorker, log: TopicPartition, offset: int, value: bytes, output: OutputRecord
) -> None:
    """Raises FrameError where a whole record is a dead letter because another application version wrote it."""
    if not any(DeadLetter.FromString(row).whole_record for row in decode(output.value).rows or ()):
        return
    try:
        frame = decode(value)
    except FrameError:
        return  # the processor could not decode it either
    schemas = {entry.stream: entry.schema.fingerprint for entry in worker.program.stage.inputs}
    if (
        frame.kind is FrameKind.DATA
        and frame.columns is not None
        and schemas.get(frame.stream) != frame.schema
    ):
        raise FrameError(
            f"{log}: offset {offset} holds messages of {frame.stream!r} that {worker.assignment.application} cannot"
            " read as it is now: another version of it has written them; give that version's file"
        )
