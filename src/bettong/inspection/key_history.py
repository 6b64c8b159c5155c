"""One key's history: replays the log of its partition and records what happens to that key. Answers "why?".

PartitionWorker folds. A wrapper around each stateful computation passes rows in parts, so that the key's state can be
read before and after each of its messages. A fold takes rows in their order, so that this changes no result. A wrapper
around the router records which rows leave the stage.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bettong.application.on_error import DEAD_LETTER, SKIP, STOP, OnError
from bettong.application.plan import StageOutput
from bettong.errors import FrameError, PoisonError
from bettong.frames.columns import Array, Columns
from bettong.frames.frame import Frame, FrameKind, decode
from bettong.identifiers import Origin, PartitionId, SequenceNumber
from bettong.inspection.message_keys import indexes_of
from bettong.schema.key_types import KeyValue
from bettong.topics import dead_letter_topic
from bettong.v1.frame_pb2 import DeadLetter
from bettong.worker.batch import Batch
from bettong.worker.due import Due
from bettong.worker.event_times import EventTimes
from bettong.worker.exclusions import Exclusion
from bettong.worker.message_watermarks import MessageWatermarks
from bettong.worker.operators.column_join import ColumnJoinOperator
from bettong.worker.operators.column_window import ColumnWindowOperator
from bettong.worker.operators.stateful import StatefulOperator
from bettong.worker.output.dead_letters import DeadLetters, FiringDeadLetters, message_text
from bettong.worker.output.framing import FrameEmitter, OutputRecord
from bettong.worker.output.routing import Router
from bettong.worker.partition import Assignment, PartitionWorker
from bettong.worker.progress import FoldProgress
from bettong.worker.references.versions import References, ReferenceTables
from bettong.worker.stage_program import Operators, StageProgram
from bettong.worker.state.table import StateTable

_KEEPING_STATES = (StatefulOperator, ColumnWindowOperator, ColumnJoinOperator)

TIME_PASSED = "time-passed"


@dataclass(frozen=True, slots=True)
class StateChange:
    """A stateful computation took a row of the key: the state before and after, as JSON can hold it."""

    computation: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Event:
    """A message of the key, and its effects.

    `time_ns` is when it was received. `verdict`: taken, or skipped as a duplicate or a gap. `message` is JSON, as are
    those of `outputs`, each with its sink or stream. `failures`: computation, policy for the message (dead-letter,
    skip), and reason.

    TIME_PASSED: a record without a message of the key, whose time ended states of the key or fired its timers;
    `message` is null.
    """

    offset: int
    origin: Origin
    sequence: SequenceNumber
    index: int
    time_ns: int
    verdict: str
    message: str
    steps: tuple[StateChange, ...] = ()
    outputs: tuple[tuple[str, str], ...] = ()
    failures: tuple[tuple[str, OnError, str], ...] = ()


class KeyHistory:
    """Folds a partition as PartitionWorker does, and reports what happens to one key."""

    def __init__(
        self,
        program: StageProgram,
        assignment: Assignment,
        key: KeyValue,
        exclusions: Mapping[int, Exclusion],
        references: ReferenceTables | None = None,
    ) -> None:
        """`key`: of the type that messages have; `key_of` converts a text. The others: see PartitionWorker."""
        self._watch = _Watch()
        self._program = _WatchedProgram(
            program.stage, program.kernels, program.state_schemas, self._watch, state_key=program.state_key
        )
        self._worker = PartitionWorker(self._program, assignment, references)
        self._worker.exclusions = exclusions
        self._key = key
        self._dead_letter_topic = dead_letter_topic(assignment.application)
        self._inputs = {entry.stream: entry for entry in program.stage.inputs}
        self._timed = program.timed()
        self.stopped: PoisonError | None = None

    @property
    def next_offset(self) -> int:
        """The offset of the next record to fold."""
        return self._worker.next_offset

    def restore(self, increments: Iterable[bytes]) -> None:
        """Begins after a snapshot: the increments of a chain, oldest first. Raises SnapshotError."""
        for each in increments:
            self._worker.restore(each)

    def fold(self, offset: int, value: bytes) -> list[Event]:
        """Folds the next record, and returns what happened to the key's states and messages in it.

        Sets `stopped` at a message that would stop the processor; nothing can be folded then. Raises LogTruncatedError
        as PartitionWorker does.
        """
        frame, columns, indexes = self._read_record(value)
        self._watch.begin(indexes)
        counters = self._worker.counters
        before = (counters.duplicates, counters.gaps)
        states = self._states()
        records: list[OutputRecord] = []
        try:
            records = self._worker.fold(offset, value)
        except PoisonError as error:
            self.stopped = error
        if frame is None:
            return []
        if not indexes or columns is None:
            return list(self._time_passed(offset, frame, states)) if self.stopped is None else []
        counters = self._worker.counters
        verdict = (
            "duplicate"
            if counters.duplicates > before[0]
            else "gap"
            if counters.gaps > before[1]
            else "taken"
        )
        return list(self._events(offset, frame, columns, indexes, verdict, records))

    def _states(self) -> dict[str, Any]:
        """The key's states that the passing of time may end or change."""
        return {name: self._worker.tables[name].state_of(self._key) for name in self._timed}

    def _time_passed(self, offset: int, frame: Frame, before: dict[str, Any]) -> Iterator[Event]:
        """The event of a record without a message of the key, if it changed the key's states."""
        after = self._states()
        steps = tuple(
            StateChange(name, before[name], after[name])
            for name in self._timed
            if before[name] != after[name]
        )
        if steps:
            yield Event(
                offset=offset,
                origin=frame.origin,
                sequence=frame.sequence,
                index=0,
                time_ns=frame.ingest_ns,
                verdict=TIME_PASSED,
                message="null",
                steps=steps,
            )

    def _read_record(self, value: bytes) -> tuple[Frame | None, Columns | None, list[int]]:
        """A record, its columns, and the indexes of the key's messages; None and none if it cannot be read."""
        frame = None
        try:
            frame = decode(value)
            entry = self._inputs.get(frame.stream)
            readable = frame.kind is FrameKind.DATA and frame.columns is not None
            if entry is None or not readable or frame.schema != entry.schema.fingerprint:
                return frame, None, []
            columns = Columns.of_payload(entry.schema, frame.columns or b"")
        except FrameError:
            return frame, None, []
        return frame, columns, indexes_of(entry, columns, self._key)

    def _events(
        self,
        offset: int,
        frame: Frame,
        columns: Columns,
        indexes: list[int],
        verdict: str,
        records: list[OutputRecord],
    ) -> Iterator[Event]:
        failures = self._failures(frame.stream, indexes, records)
        if (stopped := self.stopped) is not None:
            # Results of messages after the poison message are dropped with the frame.
            indexes = [index for index in indexes if index <= stopped.index]
            self._watch.steps.pop(stopped.index, None)
            failures[stopped.index] = [(stopped.computation, STOP, stopped.reason)]
        outputs = self._watch.outputs if self.stopped is None else {}
        for index in indexes:
            yield Event(
                offset=offset,
                origin=frame.origin,
                sequence=frame.sequence,
                index=index,
                time_ns=frame.ingest_ns,
                verdict=verdict,
                message=_json_at(columns, index),
                steps=tuple(self._watch.steps.get(index, ())),
                outputs=tuple(outputs.get(index, ())),
                failures=tuple(failures.get(index, ())),
            )

    def _failures(
        self, source: str, indexes: list[int], records: list[OutputRecord]
    ) -> dict[int, list[tuple[str, OnError, str]]]:
        """By index in the frame. Messages that the sender refused are left out: they have no key.

        The dead letter of a whole record counts for each of its messages.
        """
        policies = self._program.stage.on_error()
        found: dict[int, list[tuple[str, OnError, str]]] = {}
        for record in records:
            if record.topic == self._dead_letter_topic:
                for row in decode(record.value).rows or ():
                    dead_letter = DeadLetter.FromString(row)
                    if dead_letter.whole_record:
                        for index in indexes:
                            found.setdefault(index, []).append(
                                (dead_letter.computation, DEAD_LETTER, dead_letter.reason)
                            )
                        continue
                    if dead_letter.fired or dead_letter.computation == source:
                        continue
                    policy = policies.get(dead_letter.computation, DEAD_LETTER)
                    found.setdefault(dead_letter.index, []).append(
                        (dead_letter.computation, policy, dead_letter.reason)
                    )
        return found


class _Watch:
    """Notes on one frame: the key's indexes; by index, its steps and its outputs with their targets."""

    def __init__(self) -> None:
        self.indexes: frozenset[int] = frozenset()
        self.steps: dict[int, list[StateChange]] = {}
        self.outputs: dict[int, list[tuple[str, str]]] = {}

    def begin(self, indexes: list[int]) -> None:
        """Starts with another frame."""
        self.indexes = frozenset(indexes)
        self.steps, self.outputs = {}, {}


@dataclass(frozen=True, slots=True)
class _WatchedProgram(StageProgram):
    """A program whose states and outputs are watched, and that reports what it skips."""

    watch: _Watch = field(default_factory=_Watch)

    def on_error(self) -> dict[str, OnError]:
        """Skipped messages become dead letters here, for their reason: only the history reads them."""
        own = self.stage.on_error()
        return {name: DEAD_LETTER if policy == SKIP else policy for name, policy in own.items()}

    def operators(
        self, tables: Mapping[str, StateTable], references: References, progress: FoldProgress
    ) -> Operators:
        """See StageProgram."""
        plain = StageProgram.operators(self, tables, references, progress)
        return tuple(
            (reads, _WatchedStateful(each, self.watch) if isinstance(each, _KEEPING_STATES) else each)
            for reads, each in plain
        )

    def router(self, application: str, partition: int, partitions: int) -> Router:
        """See StageProgram."""
        return _WatchedRouter(application, PartitionId(self.stage.name, partition), partitions, self.watch)


class _WatchedStateful:
    """A stateful computation."""

    def __init__(
        self, operator: StatefulOperator | ColumnWindowOperator | ColumnJoinOperator, watch: _Watch
    ) -> None:
        self.name = operator.name
        self._operator = operator
        self._watch = watch

    def on_batch(self, batch: Batch, dead_letters: DeadLetters) -> Batch:
        """See Operator."""
        if not self._watch.indexes or not batch.length or isinstance(dead_letters, FiringDeadLetters):
            return self._operator.on_batch(batch, dead_letters)
        table = self._operator.table
        results: list[Batch] = []
        for start, stop, watched in _stretches(batch, self._watch.indexes):
            part = batch.slice(start, stop)
            key = part.key_values()[0] if watched else None
            before = table.state_of(key) if key is not None else None
            results.append(self._operator.on_batch(part, dead_letters))
            if key is not None:
                step = StateChange(self.name, before, table.state_of(key))
                self._watch.steps.setdefault(batch.source(start), []).append(step)
        return Batch.concatenated(results)

    @property
    def due(self) -> Due | None:
        """See Operator."""
        return self._operator.due

    def soonest_due(self, times: Array) -> Array | None:
        """See Operator."""
        return self._operator.soonest_due(times)

    def on_time(self, log_ns: int, watermark_ns: int, dead_letters: FiringDeadLetters) -> Sequence[Batch]:
        """See Operator."""
        return self._operator.on_time(log_ns, watermark_ns, dead_letters)


@dataclass(frozen=True, slots=True)
class _WatchedRouter(Router):
    """Notes which rows of the key leave the stage."""

    watch: _Watch

    def route(
        self, emitter: FrameEmitter, output: StageOutput, batch: Batch, dead_letters: DeadLetters
    ) -> Iterator[OutputRecord]:
        """See Router."""
        if isinstance(dead_letters, FiringDeadLetters):
            yield from Router.route(self, emitter, output, batch, dead_letters)
            return
        # Several rows may come from one message: route them as rows of their own.
        failed = DeadLetters()
        alone = Batch(batch.columns, batch.keys)
        if output.needs_time:
            alone = alone.at(EventTimes.of(batch.event_times()))
        if output.judges_lateness:
            alone = alone.judged_by(MessageWatermarks(0, batch.message_watermarks()))
        yield from Router.route(self, emitter, output, alone, failed)
        for each in failed.found:
            dead_letters.add(each.computation, each.reason, batch.source(each.index))
        stayed = {each.index for each in failed.found}
        for row, source in enumerate(batch.all_sources().tolist()):
            if source in self.watch.indexes and row not in stayed:
                left = (output.target.name, _json_at(batch.columns, row))
                self.watch.outputs.setdefault(source, []).append(left)


def _stretches(batch: Batch, indexes: frozenset[int]) -> Iterator[tuple[int, int, bool]]:
    """(start, stop, whether it is one row of the key): all rows, in their order."""
    start = 0
    for row in range(batch.length):
        if batch.source(row) in indexes:
            if start < row:
                yield start, row, False
            yield row, row + 1, True
            start = row + 1
    if start < batch.length:
        yield start, batch.length, False


def _json_at(columns: Columns, index: int) -> str:
    return message_text(columns)(index).decode()
