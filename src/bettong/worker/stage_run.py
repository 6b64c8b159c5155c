"""Runs a stage in one partition: takes the rows of a record, and what fires at it, through the operators.

Rows pass the operators in the order of the graph, then leave by the outputs. What fires in an operator passes those
after it in the same way, before the next operator fires: so what is due there because of it fires with it.

A frame with late messages is folded in parts: see `watermark_steps`.
"""

from collections.abc import Callable, Mapping, Sequence

from bettong.application.plan import StageInput
from bettong.application.timers import NEVER, Clock
from bettong.errors import FrameError
from bettong.event_progress import EventProgress
from bettong.frames.refused import unpack
from bettong.identifiers import Origin
from bettong.v1.frame_pb2 import RefusedMessages
from bettong.v1.snapshot_pb2 import Counters
from bettong.worker.accounts import Account, StageAccounts
from bettong.worker.batch import Batch
from bettong.worker.due import Due
from bettong.worker.due_computations import due_computation
from bettong.worker.entering import admitted_rows, entering_columns
from bettong.worker.event_clock import EventClock
from bettong.worker.event_times import event_times_of
from bettong.worker.exclusions import Exclusion
from bettong.worker.hot_keys import KeySample
from bettong.worker.joins.sides import SideReads, StreamReads
from bettong.worker.message_watermarks import MessageWatermarks
from bettong.worker.operator_counts import OperatorCounts
from bettong.worker.operators.operator import Operator
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
from bettong.worker.references.versions import References
from bettong.worker.stage_program import StageProgram
from bettong.worker.state.table import StateTable
from bettong.worker.watermark_steps import SoonestDue, WatermarkStep, watermark_steps

# What a computation reads, what it does, and its account; in the order in which rows pass them.
_Computations = Sequence[tuple[StreamReads | SideReads, Operator, Account]]

# Nothing is due by the log clock within a record: that fires before its messages, or after them.
_NO_TIME = -(2**63)


class StageRun:
    """A stage in one partition. Counts what becomes of rows in `counters` and `accounts`."""

    def __init__(
        self,
        program: StageProgram,
        tables: Mapping[str, StateTable],
        router: Router,
        framing: DeadLetterFraming,
        *,
        references: References,
        event_clock: EventClock | None,
        progress: FoldProgress,
        counters: Counters,
        accounts: StageAccounts,
        key_sample: KeySample | None,
    ) -> None:
        self._stage = program.stage
        self._event_clock = event_clock
        self._inputs = {entry.stream: entry for entry in program.stage.inputs}
        self._router = router
        self._framing = framing
        self._accounts = accounts
        self._operators: _Computations = [
            (reads, each, accounts.computations[each.name])
            for reads, each in program.operators(tables, references, progress)
        ]
        self._outputs = [(each, accounts.outputs[each.target.name]) for each in program.stage.outputs]
        self._timed = [at for at, (_, each, _) in enumerate(self._operators) if each.due is not None]
        self._expiring_by_event = [tables[name] for name in program.expiring(Clock.EVENT)]
        self._soonest_due: list[SoonestDue] = [self._operators[at][1].soonest_due for at in self._timed]
        if self._expiring_by_event:
            self._soonest_due.append(lambda _times: None)
        self._deleting = [tables[name] for name in program.deleting()]
        self._counts = OperatorCounts(((each, own) for _, each, own in self._operators), counters)
        self._on_error = program.on_error()
        self._progress = progress
        self._counters = counters
        self._key_sample = key_sample

    @property
    def is_timed(self) -> bool:
        """Whether anything can ever be due."""
        return bool(self._timed)

    @property
    def due(self) -> Due:
        """When the first of all computations has something due, or some time before."""
        due = [each for at in self._timed if (each := self._operators[at][1].due) is not None]
        return Due(
            min((each.log_ns for each in due), default=NEVER),
            min((each.watermark_ns for each in due), default=NEVER),
        )

    def event_progress(self, log_ns: int) -> EventProgress | None:
        """What event time waits for, and what waits for it; None where nothing goes by event time."""
        if self._event_clock is None:
            return None
        found = [
            due_computation(self._stage.operators[at].node, each.watermark_ns)
            for at in self._timed
            if (each := self._operators[at][1].due) is not None and each.watermark_ns != NEVER
        ]
        found.sort(key=lambda each: each.due_ns)
        return EventProgress(log_ns, self._event_clock.inputs, tuple(found))

    @property
    def due_by_event_ns(self) -> int:
        """The watermark at which something fires, or a state ends, or some time before."""
        ends = (table.due_ns for table in self._expiring_by_event)
        return min(self.due.watermark_ns, *(each for each in ends if each is not None), NEVER)

    def expire_by_event(self) -> None:
        """Ends the states that have outlived their time to live, by event time."""
        if self._event_clock is not None:
            for table in self._expiring_by_event:
                self._counters.expired += table.expire(self._event_clock.watermark_ns)

    def record(
        self,
        emitter: FrameEmitter,
        value: bytes,
        exclusion: Exclusion | None,
        indexes: Sequence[int] | None,
    ) -> list[OutputRecord]:
        """Folds the messages of a record. `value`: its bytes in the log.

        `exclusion`: what is excluded from it; `indexes`: the only messages to enter, None for all. Raises PoisonError
        for a message that a computation with on_error="stop" cannot process.
        """
        frame = emitter.frame
        stream = frame.stream
        entry = self._inputs.get(stream)
        if entry is None:
            known = ", ".join(self._inputs)
            return self.refuse(emitter, value, f"no stream {stream!r} enters here, only {known}")
        if exclusion is not None and exclusion.record:
            return self.refuse(emitter, value, exclusion.record, messages=frame.count)
        if frame.refused is None:
            return self._messages(emitter, value, entry, exclusion, indexes)
        records: list[OutputRecord] = []
        if frame.columns is not None:
            records = self._messages(emitter, value, entry, exclusion, indexes)
        return records + self._refused_by_sender(emitter, frame.refused, value)

    def refuse(
        self, emitter: FrameEmitter, value: bytes, reason: str, *, messages: int = 1
    ) -> list[OutputRecord]:
        """A dead letter of a whole record, which counts as that many messages."""
        self._accounts.refuse(emitter.frame.stream, messages)
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
        self._accounts.refuse(emitter.frame.stream, len(refused))
        return list(self._framing.refused(emitter, refused))

    def _messages(
        self,
        emitter: FrameEmitter,
        value: bytes,
        entry: StageInput,
        exclusion: Exclusion | None,
        indexes: Sequence[int] | None,
    ) -> list[OutputRecord]:
        frame = emitter.frame
        dead_letters = DeadLetters(self._on_error)
        try:
            columns = entering_columns(entry, frame)
            batch = (
                Batch.of_frame(entry, columns)
                if indexes is None and exclusion is None
                else admitted_rows(entry, columns, exclusion, indexes, dead_letters)
            )
            if self._stage.needs_time:
                batch = batch.at(event_times_of(entry, columns, frame, batch.keys.without))
            if self._stage.judges_lateness and self._event_clock is not None:
                batch = batch.judged_by(self._event_clock.before_messages(frame, columns.length))
        except FrameError as error:
            return self.refuse(emitter, value, str(error), messages=frame.count)
        self._counters.frames += 1
        self._counters.messages += columns.length
        account = self._accounts.inputs[entry.stream]
        account.taken += columns.length
        if exclusion is not None:
            account.dead_letters += len(dead_letters.found)
            account.skipped += dead_letters.skipped
        if batch.watermarks is not None and (steps := self._steps(batch)):
            records = self._fold_in_parts(emitter, batch, steps, dead_letters, exclusion)
        else:
            records = self._emit(emitter, [self._run(entry.stream, batch, dead_letters)], dead_letters)
        if self._stage.needs_each_watermark and batch.length:
            self._reach_row(frame.origin, batch, batch.length - 1)
        if self._key_sample is not None:
            self._key_sample.note(batch.keys, columns.length)
        return records + self._finish(emitter, dead_letters, message_text(columns))

    def _steps(self, batch: Batch) -> Sequence[WatermarkStep]:
        clock = self._event_clock
        if batch.watermarks is None or clock is None or not self._soonest_due:
            return ()
        due_ns, at_each = self.due_by_event_ns, self._stage.needs_each_watermark
        return watermark_steps(batch, clock.watermark_ns, self._soonest_due, due_ns=due_ns, at_each=at_each)

    def _fold_in_parts(
        self,
        emitter: FrameEmitter,
        batch: Batch,
        steps: Sequence[WatermarkStep],
        dead_letters: DeadLetters,
        exclusion: Exclusion | None,
    ) -> list[OutputRecord]:
        """Folds a frame with late rows: what was due before such a row fires before the row is folded.

        Rows leave before what fires, otherwise all at the end: frames and their numbers must not depend on where the
        fold only checked what is due, for `due` may be too early, and differ after a restart.
        """
        origin, stream = emitter.frame.origin, emitter.frame.stream
        waiting: list[Mapping[str, Batch]] = []
        records: list[OutputRecord] = []

        def leave() -> list[OutputRecord]:
            flows = waiting.copy()
            waiting.clear()
            return self._emit(emitter, flows, dead_letters)

        start, soonest_ns, judged_ns = 0, NEVER, self.watermark_ns
        for step in steps:
            soonest_ns = min(soonest_ns, step.soonest_ns)
            if min(soonest_ns, self.due_by_event_ns) <= step.watermark_ns:
                waiting.append(self._run(stream, batch.slice(start, step.row), dead_letters))
                start, soonest_ns = step.row, NEVER
                if dead_letters.is_stopped_before(batch.source(step.row)):
                    break
                if self.due_by_event_ns <= step.watermark_ns:
                    self._reach_row(origin, batch, step.row)
                    judged_ns = judged_ns if step.judged_ns is None else step.judged_ns
                    records += self.fire(
                        emitter, log_ns=_NO_TIME, judged_ns=judged_ns, exclusion=exclusion, before=leave
                    )
                    self.expire_by_event()
            judged_ns = step.watermark_ns
        waiting.append(self._run(stream, batch.slice(start, batch.length), dead_letters))
        self._reach_row(origin, batch, steps[-1].row)
        return records + leave()

    def _run(self, stream: str, batch: Batch, dead_letters: DeadLetters) -> Mapping[str, Batch]:
        """Takes rows that enter as `stream` through the operators. Returns every stream's rows."""
        self._accounts.inputs[stream].given += batch.length
        return run(self._operators, stream, batch, dead_letters, self._progress)

    def _reach_row(self, origin: Origin, batch: Batch, row: int) -> None:
        """Moves the watermark to the one before a row of a frame, if the frame has one for each message."""
        clock, watermarks = self._event_clock, batch.watermarks
        if clock is not None and watermarks is not None and not watermarks.are_one:
            clock.reach(origin, watermarks.own_ns(batch.source(row)))

    @property
    def watermark_ns(self) -> int:
        """The watermark; 0 while unknown, and in a stage without event time."""
        return 0 if self._event_clock is None else self._event_clock.watermark_ns

    def fire(
        self,
        emitter: FrameEmitter,
        *,
        log_ns: int,
        judged_ns: int,
        exclusion: Exclusion | None,
        before: Callable[[], list[OutputRecord]] = list,
    ) -> list[OutputRecord]:
        """Fires what is due by these clocks, and passes on what comes of it. Raises as `record` does.

        `judged_ns`: the watermark before it moved here, by which rows that fire are judged: however old they are, the
        new one does not make them late. `exclusion`: of the record: some, or all, of its timers may not be called.
        `before`: called where something fires, for the records that leave first.
        """
        watermark_ns = self.watermark_ns
        records: list[OutputRecord] = []
        for at in self._timed:
            _, operator, account = self._operators[at]
            self._progress.rest(operator.name)
            due = operator.due
            if due is None or not due.is_reached(log_ns, watermark_ns):
                continue
            dead_letters = FiringDeadLetters(self._on_error, exclusion=exclusion)
            for fired in operator.on_time(log_ns, watermark_ns, dead_letters):
                batch = (
                    fired.judged_by(MessageWatermarks(judged_ns)) if self._stage.judges_lateness else fired
                )
                account.given += batch.length
                account.given_by_time += batch.length
                behind = self._operators[at + 1 :]
                self._progress.fire(operator.name, batch, dead_letters.text)
                flows = run(behind, operator.name, batch, dead_letters, self._progress)
                records += before() + self._emit(emitter, [flows], dead_letters)
            self._progress.rest(operator.name)
            records += self._finish(emitter, dead_letters, dead_letters.text, firing=operator.name)
        self._progress.end_firing()
        return records

    def _emit(
        self, emitter: FrameEmitter, flows: Sequence[Mapping[str, Batch]], dead_letters: DeadLetters
    ) -> list[OutputRecord]:
        """Routes the rows that leave the stage."""
        records: list[OutputRecord] = []
        results = 0
        for output, account in self._outputs:
            self._progress.enter(output.target.name)
            merged = Batch.merged(
                [each[stream] for each in flows for stream in output.streams if stream in each]
            )
            for leaving in dead_letters.before_stop(merged):
                left = list(self._router.route(emitter, output, leaving, dead_letters))
                count = sum([record.count for record in left])
                account.taken += leaving.length
                account.given += count
                results += count
                records += left
        self._counters.results += results
        return records

    def _finish(
        self,
        emitter: FrameEmitter,
        dead_letters: DeadLetters,
        text: Callable[[int], bytes],
        *,
        firing: str = "",
    ) -> list[OutputRecord]:
        """Counts, and returns the dead letters. `text` returns what a dead letter holds; `firing`: whose timers fired.

        Raises PoisonError where the partition must stop.
        """
        if (sites := self._progress.failure_sites) is not None:
            dead_letters.note_sites(sites)
        if dead_letters.stopping is not None:
            raise poison(self._framing.id, emitter, dead_letters, text)
        for table in self._deleting:
            self._counters.deleted += table.take_deleted()
        if self._counts.are_any:
            self._counts.take_over()
        if dead_letters.failed_rows is not None:
            self._accounts.note_failed(dead_letters.failed_rows, firing)
        self._counters.skipped += dead_letters.skipped
        self._counters.dead_letters += len(dead_letters.found)
        return list(self._framing.failed(emitter, dead_letters, text)) if dead_letters.found else []


def run(
    operators: _Computations,
    stream: str,
    batch: Batch,
    dead_letters: DeadLetters,
    progress: FoldProgress,
) -> dict[str, Batch]:
    """Takes rows through operators. Returns every stream's rows, those that enter included.

    The rows are of one frame, or of what fired in one call, and enter as the rows of `stream`.
    """
    flows = {stream: batch}
    for reads, operator, account in operators:
        if arriving := dead_letters.before_stop(reads.arriving(flows)):
            progress.enter(operator.name)
            results = [operator.on_batch(each, dead_letters) for each in arriving]
            given = results[0] if len(results) == 1 else Batch.concatenated(results)
            for each in arriving:
                account.taken += each.length
            account.given += given.length
            flows[operator.name] = given
    return flows
