"""A stage at work in one partition: what the rows of a record, and what fires at it, lead to.

Rows pass the operators in the order of the graph, then leave by the outputs. What fires in an operator passes those
behind it in the same way, before the next operator fires: so what is due there because of it fires with it.
"""

from collections.abc import Callable, Mapping, Sequence

from bettong.application.plan import StageInput
from bettong.application.timers import NEVER
from bettong.errors import FrameError
from bettong.frames.columns import Columns
from bettong.frames.frame import Frame
from bettong.frames.refused import unpack
from bettong.v1.frame_pb2 import RefusedMessages
from bettong.v1.snapshot_pb2 import Counters
from bettong.worker.batch import Batch
from bettong.worker.due import Due
from bettong.worker.event_times import event_times_of
from bettong.worker.exclusions import Exclusion
from bettong.worker.output.dead_letters import (
    DeadLetterFraming,
    DeadLetters,
    FiringDeadLetters,
    message_text,
)
from bettong.worker.output.framing import FrameEmitter, OutputRecord
from bettong.worker.output.poison import poison
from bettong.worker.output.routing import Router
from bettong.worker.progress import FoldProgress
from bettong.worker.stage_program import Operators, StageProgram
from bettong.worker.state.table import StateTable


class StageRun:
    """Of one partition. Counts what comes of rows in `counters`."""

    def __init__(
        self,
        program: StageProgram,
        tables: Mapping[str, StateTable],
        router: Router,
        framing: DeadLetterFraming,
        *,
        progress: FoldProgress,
        counters: Counters,
    ) -> None:
        self._stage = program.stage
        self._inputs = {entry.stream: entry for entry in program.stage.inputs}
        self._router = router
        self._framing = framing
        self._operators = program.operators(tables, progress)
        self._timed = [at for at, (_, each) in enumerate(self._operators) if each.due is not None]
        self._deleting = [tables[name] for name in program.deleting()]
        self._on_error = program.on_error()
        self._progress = progress
        self._counters = counters

    @property
    def is_timed(self) -> bool:
        """Whether anything can ever be due."""
        return bool(self._timed)

    @property
    def due(self) -> Due:
        """When the first of all computations wants to be called."""
        due = [each for at in self._timed if (each := self._operators[at][1].due) is not None]
        return Due(
            min((each.log_ns for each in due), default=NEVER),
            min((each.watermark_ns for each in due), default=NEVER),
        )

    def record(
        self,
        emitter: FrameEmitter,
        value: bytes,
        exclusion: Exclusion | None,
        indexes: Sequence[int] | None,
    ) -> list[OutputRecord]:
        """What the messages of a record lead to. `value`: the record as it is in the log.

        `exclusion`: what is left out of it; `indexes`: all that enters of it, None for all. Raises PoisonError for a
        message that a computation with on_error="stop" cannot process.
        """
        frame = emitter.frame
        if frame.stream not in self._inputs:
            known = ", ".join(self._inputs)
            return self.refuse(emitter, value, f"no stream {frame.stream!r} enters here, only {known}")
        if exclusion is not None and exclusion.record:
            return self.refuse(emitter, value, exclusion.record)
        if frame.refused is None:
            return self._messages(emitter, value, exclusion, indexes)
        records: list[OutputRecord] = []
        if frame.columns is not None:
            records = self._messages(emitter, value, exclusion, indexes)
        return records + self._refused_by_sender(emitter, frame.refused, value)

    def refuse(self, emitter: FrameEmitter, value: bytes, reason: str) -> list[OutputRecord]:
        """A dead letter of a whole record."""
        dead_letters = DeadLetters()
        dead_letters.add(self._stage.name, reason, 0)
        self._counters.dead_letters += 1
        return list(
            self._framing.failed(
                emitter, dead_letters, lambda _index: value, as_received=True, whole_record=True
            )
        )

    def _refused_by_sender(
        self, emitter: FrameEmitter, packed: RefusedMessages, value: bytes
    ) -> list[OutputRecord]:
        """Dead letters of the messages of a client's frame that never became columns."""
        try:
            refused = list(unpack(packed))
        except FrameError as error:
            return self.refuse(emitter, value, str(error))
        self._counters.frames += emitter.frame.columns is None  # else it is counted with its columns
        self._counters.dead_letters += len(refused)
        return list(self._framing.refused(emitter, refused))

    def _messages(
        self,
        emitter: FrameEmitter,
        value: bytes,
        exclusion: Exclusion | None,
        indexes: Sequence[int] | None,
    ) -> list[OutputRecord]:
        frame = emitter.frame
        entry = self._inputs[frame.stream]
        dead_letters = DeadLetters(self._on_error)
        try:
            columns = _columns(entry, frame)
            batch = (
                Batch.of_frame(entry, columns)
                if indexes is None and exclusion is None
                else _admitted(entry, columns, exclusion, indexes, dead_letters)
            )
            if self._stage.needs_time:
                batch = batch.at(event_times_of(entry, columns, frame, batch.keys.without))
        except FrameError as error:
            return self.refuse(emitter, value, str(error))
        self._counters.frames += 1
        self._counters.messages += columns.length
        flows = run(self._operators, frame.stream, batch, dead_letters, self._progress)
        records = self._leave(emitter, flows, dead_letters)
        return records + self._finish(emitter, dead_letters, message_text(columns))

    def fire(
        self, emitter: FrameEmitter, *, log_ns: int, watermark_ns: int, exclusion: Exclusion | None
    ) -> list[OutputRecord]:
        """What is due, now that the clocks are there, and what that leads to. Raises as `record` does.

        `exclusion`: of the record, which may say that some of it, or all, is not called.
        """
        records: list[OutputRecord] = []
        for at in self._timed:
            operator = self._operators[at][1]
            self._progress.rest(operator.name)
            due = operator.due
            if due is None or not due.is_reached(log_ns, watermark_ns):
                continue
            dead_letters = FiringDeadLetters(self._on_error, exclusion=exclusion)
            for batch in operator.on_time(log_ns, watermark_ns, dead_letters):
                behind = self._operators[at + 1 :]
                self._progress.fire(operator.name, batch, dead_letters.text)
                flows = run(behind, operator.name, batch, dead_letters, self._progress)
                records += self._leave(emitter, flows, dead_letters)
            self._progress.rest(operator.name)
            records += self._finish(emitter, dead_letters, dead_letters.text)
        self._progress.end_firing()
        return records

    def _leave(
        self, emitter: FrameEmitter, flows: Mapping[str, Batch], dead_letters: DeadLetters
    ) -> list[OutputRecord]:
        """The rows that leave the stage."""
        records: list[OutputRecord] = []
        for output in self._stage.outputs:
            self._progress.enter(output.target.name)
            merged = Batch.merged([flows[stream] for stream in output.streams if stream in flows])
            for leaving in dead_letters.before_stop(merged):
                records.extend(self._router.route(emitter, output, leaving, dead_letters))
        self._counters.results += sum(record.count for record in records)
        return records

    def _finish(
        self, emitter: FrameEmitter, dead_letters: DeadLetters, text: Callable[[int], bytes]
    ) -> list[OutputRecord]:
        """The dead letters. `text` gives what stands in one. Raises PoisonError where the partition must stop."""
        if dead_letters.stopping is not None:
            raise poison(self._framing.stage, self._framing.partition, emitter, dead_letters, text)
        for table in self._deleting:
            self._counters.deleted += table.take_deleted()
        self._counters.skipped += dead_letters.skipped
        self._counters.dead_letters += len(dead_letters.found)
        return list(self._framing.failed(emitter, dead_letters, text)) if dead_letters.found else []


def _columns(entry: StageInput, frame: Frame) -> Columns:
    """The messages of a frame. Raises FrameError when they are not those that enter here."""
    if frame.columns is None or frame.schema != entry.schema.fingerprint:
        expected = f"columns of {entry.schema.name} (schema {entry.schema.fingerprint:016x})"
        raise FrameError(f"schema {frame.schema:016x}, expected {expected}")
    columns = Columns.of_payload(entry.schema, frame.columns)
    if columns.length != frame.count:
        raise FrameError(f"{columns.length} messages, it says {frame.count}")
    return columns


def _admitted(
    entry: StageInput,
    columns: Columns,
    exclusion: Exclusion | None,
    indexes: Sequence[int] | None,
    dead_letters: DeadLetters,
) -> Batch:
    """The rows of a frame that enter; of the others the computation that they killed a worker in disposes."""
    if indexes is not None:
        return Batch.of_part(entry, columns, [each for each in indexes if each < columns.length])
    assert exclusion is not None  # noqa: S101 - then all rows enter
    refused = dict(exclusion.of_frame(columns.length))
    for index, why in refused.items():
        add = dead_letters.add_decided if exclusion.is_logged else dead_letters.add
        add(why.computation, why.reason, index)
    return Batch.of_part(entry, columns, [row for row in range(columns.length) if row not in refused])


def run(
    operators: Operators,
    stream: str,
    batch: Batch,
    dead_letters: DeadLetters,
    progress: FoldProgress,
) -> dict[str, Batch]:
    """Passes rows through operators: every stream's rows, those that enter included.

    The rows are of one frame, or of what fired in one call, and enter as the rows of `stream`.
    """
    flows = {stream: batch}
    for reads, operator in operators:
        if arriving := dead_letters.before_stop(
            Batch.merged([flows[read] for read in reads if read in flows])
        ):
            progress.enter(operator.name)
            given = [operator.on_batch(each, dead_letters) for each in arriving]
            flows[operator.name] = given[0] if len(given) == 1 else Batch.concatenated(given)
    return flows
