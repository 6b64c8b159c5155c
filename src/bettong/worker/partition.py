"""One partition of one stage: `(state, frame) -> (state, output frames, dead letters)`.

The state after offset o is a fold of the log's first o records and of nothing else. Schedules only feed it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bettong.application.plan import StageInput
from bettong.application.streams import Stateful
from bettong.delivery import DeliveryTable, Gap, Verdict
from bettong.errors import FrameError, LogTruncatedError, PoisonError, SnapshotError, StateChangedError
from bettong.frames.columns import Columns
from bettong.frames.frame import UNREADABLE, Frame, FrameKind, decode
from bettong.frames.refused import unpack
from bettong.snapshots import snapshot as codec
from bettong.snapshots.chain import Increment
from bettong.v1.frame_pb2 import RefusedMessages
from bettong.v1.snapshot_pb2 import Counters, Sent, Snapshot
from bettong.worker.batch import Batch
from bettong.worker.delivery_stored import delivery_of, stored_delivery
from bettong.worker.exclusions import Exclusion
from bettong.worker.output.dead_letters import DeadLetterFraming, DeadLetters, FailedMessage, message_text
from bettong.worker.output.framing import FrameEmitter, OutputRecord
from bettong.worker.output.numbering import SentTable
from bettong.worker.progress import FoldProgress
from bettong.worker.stage_program import StageProgram, run
from bettong.worker.state.shapes import Migration, migration
from bettong.worker.state.table import SavedStates, StateTable

# Characters of a message, and of the reason why it cannot be processed, in the error that stops a partition.
_MESSAGE_SHOWN = 1000
_REASON_SHOWN = 300


@dataclass(frozen=True, slots=True)
class Assignment:
    """Which partition a worker folds, and the limits of the application that it belongs to."""

    application: str
    partition: int
    partitions: int
    frame_bytes_max: int


class PartitionWorker:
    """Folds the records of one partition in order. Not for several threads at once.

    `exclusions`: by offset, what is left out of records, for it killed a worker. `progress` may be read by any thread.
    """

    def __init__(self, program: StageProgram, assignment: Assignment) -> None:
        self.program = program
        self.assignment = assignment
        self.next_offset = 0
        self.counters = Counters()
        self.exclusions: Mapping[int, Exclusion] = {}
        self.progress = FoldProgress()
        self._indexes: Sequence[int] | None = None
        self._now_ns = 0
        self._delivery = DeliveryTable()
        self._sent = SentTable()
        self._tables = program.tables()
        self._operators = program.operators(self._tables, self.progress)
        self._expiring = [self._tables[name] for name in program.expiring()]
        self._deleting = [self._tables[name] for name in program.deleting()]
        self._on_error = program.on_error()
        own = assignment
        self._router = program.router(own.application, own.partition, own.partitions)
        self._dead_letter_framing = DeadLetterFraming(own.application, program.stage.name, own.partition)
        self._inputs = {entry.stream: entry for entry in program.stage.inputs}
        # Of the last increment: see `snapshots.chain`.
        self._since = self._root = self._round = 0
        self._saved_offset = self._saved_checksum = 0

    @property
    def now_ns(self) -> int:
        """The fold's time: when the newest frame that it has seen was taken in, Unix ns; 0 before the first."""
        return self._now_ns

    @property
    def gap(self) -> Gap | None:
        """The oldest gap in what an origin sent that is not filled, since this worker began."""
        return self._delivery.gap

    @property
    def keys(self) -> int:
        """How many keys have a state, over all computations."""
        return sum(table.keys for table in self._tables.values())

    @property
    def tables(self) -> Mapping[str, StateTable]:
        """The states of stateful computations, by name, to look at them."""
        self._expire()
        return self._tables

    def fold(self, offset: int, value: bytes) -> list[OutputRecord]:
        """Takes the record at `offset`, which must be the next one, and returns the records it leads to.

        Raises LogTruncatedError when records are missing before it. Anything wrong with the record itself is a
        dead letter. Raises PoisonError for a message that a computation with on_error="stop" cannot process. When
        it raises, the worker is spoilt: make a new one from a snapshot.
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
            return self._refuse(offset, UNREADABLE, value, str(error))
        self._now_ns = max(self._now_ns, frame.ingest_ns)
        if self._expiring:
            self._expire()
        if frame.kind is FrameKind.OPEN:
            self._delivery.open(frame.origin, acknowledged=frame.previous, now_ns=frame.ingest_ns)
        elif frame.kind is FrameKind.END:
            self._delivery.end(frame.origin, acknowledged=frame.previous, now_ns=frame.ingest_ns)
        elif frame.kind is FrameKind.DATA and self._take(frame):
            return self._process(offset, frame, value)
        return []

    def fold_part(self, offset: int, value: bytes, indexes: Sequence[int]) -> None:
        """Folds only the messages at these indexes of the record's frame. Spoils the worker: to see whether it lives.

        Raises as `fold` does.
        """
        self._indexes = indexes
        self.fold(offset, value)

    def snapshot(self) -> bytes:
        """The whole state after all records below `next_offset`; equal states have equal bytes."""
        offset = self.next_offset
        return codec.encode(
            self._stored(
                {name: table.dump(self._place(name)) for name, table in self._tables.items()},
                root=offset,
                round_=offset,
            )
        )

    def increment(self) -> tuple[Increment, bytes]:
        """What is to be saved on top of the increments before it (see `snapshots.chain`), and its bytes.

        Once it was given it must be saved before the next one can be; if saving fails, make a new worker.
        """
        begins = all(table.settled for table in self._tables.values())
        round_ = self.next_offset if begins else self._round
        tables = self._tables.items()
        states = {name: table.increment(begins=begins, place=self._place(name)) for name, table in tables}
        root = round_ if all(table.settled for table in self._tables.values()) else self._root
        stored = self._stored(states, root=root, round_=round_)
        stored.since, stored.before = self._saved_offset, self._saved_checksum
        data = codec.encode(stored)
        self._note(stored, data)
        return self.saved, data

    @property
    def saved(self) -> Increment:
        """The last increment that was given or taken over."""
        return Increment(self._saved_offset, self._since, self._root)

    def restore(self, data: bytes) -> list[str]:
        """Takes over an increment; give those of a chain to a new worker, oldest first.

        Returns the computations whose code is another one than that which saved it: worth telling, and allowed.
        Raises SnapshotError when it is damaged, of another partition, or not the one that follows; StateChangedError
        when the application has changed and does not say what becomes of old states, or fails at it. Then the worker is
        spoilt.
        """
        own, stage = self.assignment, self.program.stage.name
        stored = codec.decode(data, application=own.application, stage=stage, partition=own.partition)
        follows = (self._saved_offset, self._saved_checksum)
        if self._saved_offset and (stored.since, stored.before) != follows:
            raise SnapshotError(
                f"{self._name_of(stored)}: it goes on from {stored.since} ({stored.before:08x}), not"
                f" from {follows[0]} ({follows[1]:08x})"
            )
        self.next_offset = stored.offset
        migrations = self._migrations(stored)
        begins = stored.round == stored.offset
        for computation, table in self._tables.items():
            place, changes = self._place(computation), migrations[computation]
            parts = (stored.states, stored.ended, stored.last_ns)
            saved = SavedStates(*(part.get(computation, b"") for part in parts))
            table.load(saved, log_ns=stored.now_ns, begins=begins, migration=changes, place=place)
        self.counters.CopyFrom(stored.counters)
        self._now_ns = stored.now_ns
        self._delivery = delivery_of(stored.delivery)
        self._sent = SentTable.of((each.origin, each.partition, each.sequence) for each in stored.sent)
        self._note(stored, data)
        shapes = self.program.shapes
        return [name for name in self._tables if stored.shapes[name].code != shapes[name].code]

    def _name_of(self, stored: Snapshot) -> str:
        return f"snapshot of {stored.application}/{stored.stage}/{stored.partition} at {stored.offset}"

    def _stored(self, saved: dict[str, SavedStates], *, root: int, round_: int) -> Snapshot:
        stored = Snapshot(
            application=self.assignment.application,
            stage=self.program.stage.name,
            partition=self.assignment.partition,
            offset=self.next_offset,
            now_ns=self._now_ns,
            delivery=stored_delivery(self._delivery),
            counters=self.counters,
            states={name: each.states for name, each in saved.items()},
            ended={name: each.ended for name, each in saved.items() if each.ended},
            last_ns={name: each.last_ns for name, each in saved.items() if each.last_ns},
            shapes=self.program.shapes,
            root=root,
            round=round_,
        )
        for (origin, partition), sequence in self._sent.sequences.items():
            stored.sent.append(Sent(origin=origin, partition=partition, sequence=sequence))
        return stored

    def _place(self, computation: str) -> bytes:
        """What a signature of a computation's states covers beside them."""
        of = self.assignment
        names = (of.application, self.program.stage.name, of.partition, self.next_offset, computation)
        return "\0".join(map(str, names)).encode()

    def _note(self, stored: Snapshot, data: bytes) -> None:
        self._since, self._root, self._round = stored.since, stored.root, stored.round
        self._saved_offset, self._saved_checksum = stored.offset, codec.checksum(data)

    def _migrations(self, stored: Snapshot) -> dict[str, Migration | None]:
        """How each computation's stored states become those of the application as it is now."""
        name = self._name_of(stored)
        nodes = {each.node.name: each.node for each in self.program.stage.operators}
        found: dict[str, Migration | None] = {}
        for computation in self._tables:
            if computation not in stored.states:
                raise StateChangedError(
                    f"{name}: it has no state of computation {computation!r}: it was saved by another version of the"
                    " application. Run that version, or delete the state with `bettong state reset`, so that it is"
                    " folded from the log again"
                )
            node = nodes[computation]
            if isinstance(node, Stateful):
                shapes = (stored.shapes[computation], self.program.shapes[computation])
                found[computation] = migration(name, shapes[0], node, shapes[1])
        return found

    def _expire(self) -> None:
        """The log clock is at `now_ns`: ends the states that have outlived their time to live."""
        for table in self._expiring:
            self.counters.expired += table.expire(self._now_ns)

    def _take(self, frame: Frame) -> bool:
        verdict = self._delivery.take(
            frame.origin, sequence=frame.sequence, previous=frame.previous, now_ns=frame.ingest_ns
        )
        if verdict is Verdict.DUPLICATE:
            self.counters.duplicates += 1
        elif verdict is Verdict.GAP:
            self.counters.gaps += 1
        return verdict is Verdict.TAKE

    def _process(self, offset: int, frame: Frame, value: bytes) -> list[OutputRecord]:
        entry = self._inputs.get(frame.stream)
        if entry is None:
            known = ", ".join(self._inputs)
            return self._refuse(offset, frame, value, f"no stream {frame.stream!r} enters here, only {known}")
        exclusion = self.exclusions.get(offset)
        if exclusion is not None and exclusion.record:
            return self._refuse(offset, frame, value, exclusion.record)
        if frame.refused is None:
            return self._run(entry, offset, frame, value)
        records = self._run(entry, offset, frame, value) if frame.columns is not None else []
        return records + self._refused_by_sender(offset, frame, frame.refused, value)

    def _refused_by_sender(
        self, offset: int, frame: Frame, packed: RefusedMessages, value: bytes
    ) -> list[OutputRecord]:
        """Dead letters of the messages of a client's frame that never became columns."""
        try:
            refused = list(unpack(packed))
        except FrameError as error:
            return self._refuse(offset, frame, value, str(error))
        self.counters.frames += frame.columns is None  # else it is counted with its columns
        self.counters.dead_letters += len(refused)
        return list(self._dead_letter_framing.refused(self._emitter(offset, frame), refused))

    def _run(self, entry: StageInput, offset: int, frame: Frame, value: bytes) -> list[OutputRecord]:
        """What the messages of a frame lead to."""
        if frame.columns is None or frame.schema != entry.schema.fingerprint:
            expected = f"columns of {entry.schema.name} (schema {entry.schema.fingerprint:016x})"
            return self._refuse(offset, frame, value, f"schema {frame.schema:016x}, expected {expected}")
        try:
            columns = Columns.of_payload(entry.schema, frame.columns)
        except FrameError as error:
            return self._refuse(offset, frame, value, str(error))
        if columns.length != frame.count:
            return self._refuse(offset, frame, value, f"{columns.length} messages, it says {frame.count}")
        self.counters.frames += 1
        self.counters.messages += columns.length
        dead_letters = DeadLetters(self._on_error)
        batch = (
            Batch.of_frame(entry, columns)
            if self._indexes is None and offset not in self.exclusions
            else self._admitted(entry, columns, self.exclusions.get(offset), dead_letters)
        )
        flows = run(self._operators, frame.stream, batch, dead_letters, self.progress)
        for table in self._deleting:
            self.counters.deleted += table.take_deleted()
        emitter = self._emitter(offset, frame)
        records: list[OutputRecord] = []
        for output in self.program.stage.outputs:
            self.progress.enter(output.target.name)
            merged = Batch.merged([flows[stream] for stream in output.streams if stream in flows])
            for leaving in dead_letters.before_stop(merged):
                records.extend(self._router.route(emitter, output, leaving, dead_letters))
        if dead_letters.stopping is not None:
            raise self._poison(offset, frame, message_text(columns), dead_letters.stopping)
        self.counters.results += sum(record.count for record in records)
        self.counters.skipped += dead_letters.skipped
        if dead_letters.found:
            self.counters.dead_letters += len(dead_letters.found)
            records.extend(self._dead_letter_framing.failed(emitter, dead_letters, message_text(columns)))
        return records

    def _admitted(
        self, entry: StageInput, columns: Columns, exclusion: Exclusion | None, dead_letters: DeadLetters
    ) -> Batch:
        """The rows of a frame that enter; of the others the computation that they killed a worker in disposes."""
        if self._indexes is not None:
            return Batch.of_part(entry, columns, [each for each in self._indexes if each < columns.length])
        assert exclusion is not None  # noqa: S101 - then all rows enter
        refused = dict(exclusion.of_frame(columns.length))
        for index, why in refused.items():
            add = dead_letters.add_decided if exclusion.is_logged else dead_letters.add
            add(why.computation, why.reason, index)
        return Batch.of_part(entry, columns, [row for row in range(columns.length) if row not in refused])

    def _refuse(self, offset: int, frame: Frame, value: bytes, reason: str) -> list[OutputRecord]:
        """A dead letter of a whole record."""
        dead_letters = DeadLetters()
        dead_letters.add(self.program.stage.name, reason, 0)
        self.counters.dead_letters += 1
        emitter = self._emitter(offset, frame)
        return list(
            self._dead_letter_framing.failed(
                emitter, dead_letters, lambda _index: value, as_received=True, whole_record=True
            )
        )

    def _poison(
        self, offset: int, frame: Frame, message: Callable[[int], bytes], failed: FailedMessage
    ) -> PoisonError:
        """What stops this partition: all that is needed to find the message, and the remedy, on one line."""
        text = message(failed.index).decode(errors="replace")
        return PoisonError(
            f'{failed.computation!r} (on_error="stop") cannot process a message:'
            f" {_shortened(' '.join(failed.reason.split()), _REASON_SHOWN)};"
            f" stage {self.program.stage.name!r}, partition {self.assignment.partition}, offset {offset}, origin"
            f" {frame.origin}, sequence {frame.sequence}, index {failed.index}. Mend the function, or give it"
            ' on_error="dead-letter" or "skip", and start the processor again: it goes on with this very message:'
            f" {_shortened(text, _MESSAGE_SHOWN)}",
            computation=failed.computation,
            reason=failed.reason,
            index=failed.index,
        )

    def _emitter(self, offset: int, frame: Frame) -> FrameEmitter:
        return FrameEmitter(frame, offset, self.assignment.frame_bytes_max, self._sent)


def _shortened(text: str, characters: int) -> str:
    return text if len(text) <= characters else text[:characters] + " ..."
