"""One partition of one stage: `(state, frame) -> (state, output frames, dead letters)`.

The state after offset o is a fold of the log's first o records and of nothing else. Schedules only feed it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from bettong.application.timers import NEVER, Clock
from bettong.delivery import DeliveryTable, Gap, Verdict
from bettong.errors import FrameError, LogTruncatedError, SnapshotError, StateChangedError
from bettong.event_progress import EventProgress
from bettong.frames.frame import UNREADABLE, Frame, FrameKind, decode
from bettong.identifiers import Origin, PartitionId, SequenceNumber
from bettong.snapshots import snapshot as codec
from bettong.snapshots.chain import Increment
from bettong.v1.snapshot_pb2 import Counters, Sent, Snapshot
from bettong.worker.accounts import StageAccounts
from bettong.worker.chain_sizes import ChainSizes
from bettong.worker.delivery_stored import delivery_of, stored_delivery
from bettong.worker.event_clock import EventClock
from bettong.worker.exclusions import Exclusion
from bettong.worker.generations import as_bare_tick, generation_after, is_outdated
from bettong.worker.hot_keys import KeySample
from bettong.worker.output.dead_letters import DeadLetterFraming
from bettong.worker.output.framing import FrameEmitter, OutputRecord
from bettong.worker.output.numbering import SentTable
from bettong.worker.progress import FoldProgress
from bettong.worker.references.versions import NoStore, References, ReferenceTables
from bettong.worker.stage_program import StageProgram
from bettong.worker.stage_run import StageRun
from bettong.worker.state.state_schemas import Migration, migration
from bettong.worker.state.table import SavedStates, StateTable, scope_of


@dataclass(frozen=True, slots=True)
class Assignment:
    """Which partition a worker folds, and the limits of the application that it belongs to."""

    application: str
    partition: int
    partitions: int
    frame_bytes_max: int
    samples_keys: bool = True


class PartitionWorker:
    """Folds the records of one partition in order. Not for several threads at once.

    `references`: where its stage's reference tables come from; None for a worker that is only inspected. `exclusions`:
    by offset, what is excluded from records because it killed a worker. `progress` may be read by any thread.
    `key_sample`: the hot keys among the messages folded, no part of the state; None if unwanted.
    """

    def __init__(
        self, program: StageProgram, assignment: Assignment, references: ReferenceTables | None = None
    ) -> None:
        self.program = program
        self.assignment = assignment
        self.id = PartitionId(program.stage.name, assignment.partition)
        self.next_offset = 0
        self.counters = Counters()
        self.accounts = StageAccounts(program.stage)
        self.exclusions: Mapping[int, Exclusion] = {}
        self.progress = FoldProgress()
        self._indexes: Sequence[int] | None = None
        self._now_ns = self._generation = 0
        self._delivery = DeliveryTable()
        self._sent = SentTable()
        self._tables = program.tables()
        self._references = References(program.stage, references or ReferenceTables(NoStore()))
        self._expiring = [self._tables[name] for name in program.expiring(Clock.LOG)]
        self._expiring_by_event = [self._tables[name] for name in program.expiring(Clock.EVENT)]
        self._clocked = [*self._expiring, *(self._tables[name] for name in program.clocked())]
        own, stage = assignment, program.stage
        router = program.router(own.application, own.partition, own.partitions)
        self._event_clock = None
        if stage.needs_time:
            self._event_clock = EventClock(stage, router.timed_destinations(stage.outputs), own.partitions)
        self.key_sample = KeySample() if assignment.samples_keys else None
        self._make_stage_run = partial(
            StageRun,
            program,
            self._tables,
            router,
            DeadLetterFraming(own.application, self.id),
            references=self._references,
            event_clock=self._event_clock,
            progress=self.progress,
            counters=self.counters,
            accounts=self.accounts,
            key_sample=self.key_sample,
        )
        self._stage_run = self._make_stage_run()
        # Otherwise only messages make anything happen here.
        self._has_time = stage.needs_time or self._stage_run.is_timed or bool(self._expiring)
        # The last increment: see `snapshots.chain`.
        self._since = self._root = self._round = 0
        self._saved_offset = self._saved_checksum = 0
        self.chain_sizes = ChainSizes()

    @property
    def now_ns(self) -> int:
        """The log clock: the newest ingest time among the frames folded, Unix ns; 0 before the first."""
        return self._now_ns

    @property
    def due_ns(self) -> int | None:
        """The log clock at which something here is due although no record comes; None: nothing is.

        Cheap: it may be asked all the time. What is due happens with the first record from then on, if need be a TICK.
        """
        due = self._stage_run.due
        found = [table.due_ns for table in self._expiring]
        if due.log_ns != NEVER:
            found.append(due.log_ns)
        if self._event_clock is not None:
            found.append(self._event_clock.due_ns(self._now_ns, self._stage_run.due_by_event_ns))
        return min((each for each in found if each is not None), default=None)

    @property
    def watermark(self) -> tuple[int, Origin | None]:
        """The watermark, Unix ns, 0 while unknown; and the live origin that holds it back, if any."""
        clock = self._event_clock
        return (0, None) if clock is None else (clock.watermark_ns, clock.slowest)

    @property
    def event_progress(self) -> EventProgress | None:
        """What event time waits for here, and what waits for it; None where nothing goes by event time."""
        return self._stage_run.event_progress(self._now_ns)

    @property
    def gap(self) -> Gap | None:
        """The oldest gap in an origin's sequence that is not filled yet."""
        return self._delivery.gap

    @property
    def keys(self) -> int:
        """How many keys have a state, over all computations."""
        return sum(table.keys for table in self._tables.values())

    @property
    def tables(self) -> Mapping[str, StateTable]:
        """The states of stateful computations, by name, for inspection: without those that have expired."""
        self._expire()
        self._stage_run.expire_by_event()
        return self._tables

    def read_references(self) -> None:
        """Reads the reference tables that the next record sees, if they are not there: `fold` would block on it.

        Raises StoreError, and leaves the worker as it was.
        """
        self._references.read()

    def fold(self, offset: int, value: bytes) -> list[OutputRecord]:
        """Folds the record at `offset`, which must be `next_offset`, and returns the output records.

        Raises LogTruncatedError when records are missing before it, PoisonError for a message that a computation with
        on_error="stop" cannot process, and what `read_references` raises. Anything wrong with the record itself is a
        dead letter. When it raises, the worker is unusable: make a new one from a snapshot.
        """
        if offset != self.next_offset:
            raise LogTruncatedError(
                f"stage {self.program.stage.name!r}, partition {self.assignment.partition}: expected offset"
                f" {self.next_offset}, got {offset}: records are missing from its log"
            )
        self.next_offset = offset + 1
        try:
            frame = decode(value)
        except FrameError as error:
            unreadable = self._emitter(offset, UNREADABLE, self._stage_run.watermark_ns)
            return self._stage_run.refuse(unreadable, value, str(error))
        if frame.repartition is not None:
            self._generation = generation_after(self._generation, offset, frame.repartition, self.id)
            return []
        if self._generation and is_outdated(frame, self._generation):
            self.counters.duplicates += frame.kind is FrameKind.DATA
            frame = as_bare_tick(frame)
        self._now_ns = max(self._now_ns, frame.ingest_ns)
        if not self._has_time:
            self._switch_reference(frame)
            return self._fold_messages(offset, frame, value, 0) if self._deliver(frame) else []
        records = self._pass_time(offset, frame)
        self._switch_reference(frame)
        is_taken, before_ns = self._deliver(frame), self._stage_run.watermark_ns
        if is_taken:
            records += self._fold_messages(offset, frame, value, before_ns)
        clock = self._event_clock
        if clock is None:
            return records + self._fire(offset, frame, 0, 0)
        judged_ns = clock.watermark_ns
        clock.pass_record(frame, self._delivery, is_taken=is_taken)
        records += self._fire(offset, frame, before_ns, judged_ns)
        self._stage_run.expire_by_event()
        return [*records, *clock.ticks(frame, self._now_ns, self._sent, self._generation)]

    def _fold_messages(self, offset: int, frame: Frame, value: bytes, sent_ns: int) -> list[OutputRecord]:
        """Folds the messages of a record. Output frames carry the watermark `sent_ns`."""
        emitter, exclusion = self._emitter(offset, frame, sent_ns), self.exclusions.get(offset)
        return self._stage_run.record(emitter, value, exclusion, self._indexes)

    def _pass_time(self, offset: int, frame: Frame) -> list[OutputRecord]:
        """Advances the log clock to a record's. Fires what is due by it, and by a watermark that it moves."""
        clock, before_ns = self._event_clock, self._stage_run.watermark_ns
        if clock is not None:
            clock.pass_time(self._now_ns)
        records = self._fire(offset, frame, before_ns, before_ns)
        self._expire()
        if self._stage_run.watermark_ns > before_ns:
            self._stage_run.expire_by_event()
        return records

    def _fire(self, offset: int, frame: Frame, sent_ns: int, judged_ns: int) -> list[OutputRecord]:
        """Fires what is due by the clocks as they are. `judged_ns`: see `StageRun.fire`.

        `sent_ns`: the watermark that its frames carry. There may be several for one destination, and none of them may
        make the others late.
        """
        if not self._stage_run.is_timed:
            return []
        for table in self._clocked:
            table.note_clock(self._now_ns)
        return self._stage_run.fire(
            self._emitter(offset, frame, sent_ns),
            log_ns=self._now_ns,
            judged_ns=judged_ns,
            exclusion=self.exclusions.get(offset),
        )

    def _switch_reference(self, frame: Frame) -> None:
        """Later records see the version of a reference table that this record names, if any."""
        if frame.reference is not None:
            self._references.switch(frame.reference)

    def _deliver(self, frame: Frame) -> bool:
        """Applies the delivery rule. Returns whether the record has messages that are to be folded."""
        if frame.kind is FrameKind.OPEN:
            self._delivery.open(frame.origin, acknowledged=frame.previous, now_ns=frame.ingest_ns)
        elif frame.kind is FrameKind.END:
            self._delivery.end(
                frame.origin, acknowledged=frame.previous, now_ns=frame.ingest_ns, kept=frame.kept
            )
        if frame.kind is not FrameKind.DATA:
            return False
        verdict = self._delivery.take(
            frame.origin, sequence=frame.sequence, previous=frame.previous, now_ns=frame.ingest_ns
        )
        self.counters.duplicates += verdict is Verdict.DUPLICATE
        self.counters.gaps += verdict is Verdict.GAP
        return verdict is Verdict.TAKE

    def fold_part(self, offset: int, value: bytes, indexes: Sequence[int]) -> None:
        """Folds only the messages at these indexes of the record's frame, to see whether the process survives.

        The worker is unusable afterwards. Raises as `fold` does.
        """
        self._indexes = indexes
        self.fold(offset, value)

    def snapshot(self) -> bytes:
        """The whole state after all records below `next_offset`; equal states have equal bytes."""
        saved = {name: table.dump(self._scope(name)) for name, table in self._tables.items()}
        return codec.encode(self._stored(saved, root=self.next_offset, round_=self.next_offset))

    def increment(self) -> tuple[Increment, bytes]:
        """The next increment, to be saved on top of those before it (see `snapshots.chain`), and its bytes.

        It must be saved before the next one can be; if saving fails, make a new worker.
        """
        begins = all(table.round_complete for table in self._tables.values())
        round_ = self.next_offset if begins else self._round
        states = {}
        for name, table in self._tables.items():
            self.progress.enter(name)
            states[name] = table.increment(begins=begins, scope=self._scope(name))
        self.progress.enter("")
        root = round_ if all(table.round_complete for table in self._tables.values()) else self._root
        stored = self._stored(states, root=root, round_=round_)
        stored.since, stored.before = self._saved_offset, self._saved_checksum
        data = codec.encode(stored)
        self._note_saved(stored, data)
        return self.saved, data

    @property
    def saved(self) -> Increment:
        """The last increment that was made or restored."""
        return Increment(self._saved_offset, self._since, self._root)

    def restore(self, data: bytes) -> list[str]:
        """Restores an increment; pass those of a chain to a new worker, oldest first.

        Returns the computations whose code has changed since it was saved: allowed, but worth reporting. Raises
        SnapshotError when it is damaged, of another partition, or does not follow the last one; StateChangedError when
        states have changed in the application and migrate= is missing, or fails. Then the worker is unusable.
        """
        stored = codec.decode(data, application=self.assignment.application, partition=self.id)
        follows = (self._saved_offset, self._saved_checksum)
        if self._saved_offset and (stored.since, stored.before) != follows:
            raise SnapshotError(
                f"{self._name_of(stored)}: it follows {stored.since} ({stored.before:08x}), not"
                f" {follows[0]} ({follows[1]:08x})"
            )
        self.next_offset, begins = stored.offset, stored.round == stored.offset
        migrations = self._migrations(stored)
        for computation, table in self._tables.items():
            self.progress.enter(computation)
            scope, changes = self._scope(computation), migrations[computation]
            by_event = table in self._expiring_by_event
            last_ns = stored.last_event_ns if by_event else stored.last_ns
            parts = (stored.states, stored.ended, last_ns)
            saved = SavedStates(*(part.get(computation, b"") for part in parts))
            clock_ns = (stored.event_clock.watermark_ns if by_event else 0) or stored.now_ns
            table.load(saved, log_ns=clock_ns, begins=begins, migration=changes, scope=scope)
        self.progress.enter("")
        self.counters.CopyFrom(stored.counters)
        self._now_ns, self._generation = stored.now_ns, stored.generation
        self.accounts.load(stored.accounts if stored.HasField("accounts") else None, stored.offset)
        if self._event_clock is not None:
            self._event_clock.load(stored.event_clock, stored.now_ns)
        self._delivery = delivery_of(stored.delivery)
        self._references.load(stored.references)
        self._sent = SentTable.of(
            (Origin(each.origin), each.partition, SequenceNumber(each.sequence)) for each in stored.sent
        )
        self._note_saved(stored, data)
        # What operators derive from states, such as windows combined ahead, is of those before.
        self._stage_run = self._make_stage_run()
        current, before = self.program.state_schemas, stored.state_schemas
        return [name for name in self._tables if before[name].code != current[name].code]

    def _name_of(self, stored: Snapshot) -> str:
        return f"snapshot of {stored.application}/{stored.stage}/{stored.partition} at {stored.offset}"

    def _stored(self, saved: dict[str, SavedStates], *, root: int, round_: int) -> Snapshot:
        stored = Snapshot(
            application=self.assignment.application,
            stage=self.program.stage.name,
            partition=self.assignment.partition,
            offset=self.next_offset,
            now_ns=self._now_ns,
            generation=self._generation,
            delivery=stored_delivery(self._delivery),
            counters=self.counters,
            accounts=self.accounts.stored(),
            states={name: each.states for name, each in saved.items()},
            ended={name: each.ended for name, each in saved.items() if each.ended},
            state_schemas=self.program.state_schemas,
            root=root,
            round=round_,
            references=self._references.stored(),
        )
        for name, each in saved.items():
            if each.last_ns:
                by_event = self._tables[name] in self._expiring_by_event
                (stored.last_event_ns if by_event else stored.last_ns)[name] = each.last_ns
        if self._event_clock is not None:
            stored.event_clock.CopyFrom(self._event_clock.stored())
        for (origin, partition), sequence in self._sent.sequences.items():
            stored.sent.append(Sent(origin=origin, partition=partition, sequence=sequence))
        return stored

    def _scope(self, computation: str) -> bytes:
        """What a signature of a computation's states covers, besides the states."""
        return scope_of(self.assignment.application, self.id, self.next_offset, computation)

    def _note_saved(self, stored: Snapshot, data: bytes) -> None:
        self._since, self._root, self._round = stored.since, stored.root, stored.round
        self._saved_offset, self._saved_checksum = stored.offset, codec.checksum(data)
        self.chain_sizes.note(stored.offset, stored.root, len(data))

    def _migrations(self, stored: Snapshot) -> dict[str, Migration | None]:
        """How each computation's stored states become those of the application as it is now."""
        name = self._name_of(stored)
        found: dict[str, Migration | None] = {}
        for node in self.program.stateful():
            computation = node.name
            if computation not in stored.states:
                raise StateChangedError(
                    f"{name}: it has no state of computation {computation!r}: it was saved by another version of the"
                    " application. Run that version, or delete the state with `bettong state reset`, so that it is"
                    " folded from the log again"
                )
            saved, current = stored.state_schemas[computation], self.program.state_schemas[computation]
            found[computation] = migration(name, saved, node, current)
        return found

    def _expire(self) -> None:
        """Ends the states that have outlived their time to live at `now_ns`."""
        for table in self._expiring:
            self.counters.expired += table.expire(self._now_ns)

    def _emitter(self, offset: int, frame: Frame, watermark_ns: int) -> FrameEmitter:
        """Emits frames. They carry that watermark where the stage needs time."""
        clock, bytes_max = self._event_clock, self.assignment.frame_bytes_max
        if clock is None:
            return FrameEmitter(frame, offset, bytes_max, self._sent)
        note = clock.sends(watermark_ns, self._now_ns)
        return FrameEmitter(frame, offset, bytes_max, self._sent, watermark_ns, note)
