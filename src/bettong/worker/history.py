"""One key's history: the log of its partition folded again, with an eye on that key. Answers "why?".

The fold is that of PartitionWorker. Around each computation stands a watch, which hands it the rows one stretch after
the other, so that the key's state can be looked at before and after each of its messages. A fold takes rows in their
order, so that changes no result. What the frames that lead away from here would be numbered is not kept to: nobody
reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bettong.application.fields import Kind
from bettong.application.on_error import DEAD_LETTER, SKIP, STOP, OnError
from bettong.application.plan import StageInput
from bettong.errors import FrameError, PoisonError
from bettong.frames.columns import Columns
from bettong.frames.frame import Frame, decode
from bettong.frames.frame import Kind as FrameKind
from bettong.frames.text import bytes_of, json_line
from bettong.topics import dead_letter_topic
from bettong.v1.frame_pb2 import DeadLetter
from bettong.worker.batch import Batch, FrameKeys
from bettong.worker.exclusions import Exclusion
from bettong.worker.operators.operator import Operator
from bettong.worker.operators.stateful import StatefulOperator
from bettong.worker.output.dead_letters import DeadLetters
from bettong.worker.output.framing import OutputRecord
from bettong.worker.partition import Assignment, PartitionWorker
from bettong.worker.stage_program import StageProgram
from bettong.worker.state.records import key_column
from bettong.worker.state.table import StateTable

KeyValue = str | int | bytes


@dataclass(frozen=True, slots=True)
class Step:
    """A stateful computation took a row of the key: the state before and after, as JSON can hold it."""

    computation: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Event:
    """A message of the key, and what it led to.

    `time_ns` is when it was taken in. `verdict`: taken, or passed over as a duplicate or a gap. `message` is JSON,
    as are those of `outputs`, each with the sink or stream that it left for. `failures`: computation, what became of
    the message there (dead-letter, skip), and why.
    """

    offset: int
    origin: str
    sequence: int
    index: int
    time_ns: int
    verdict: str
    message: str
    steps: tuple[Step, ...] = ()
    outputs: tuple[tuple[str, str], ...] = ()
    failures: tuple[tuple[str, OnError, str], ...] = ()


class KeyHistory:
    """Folds a partition as PartitionWorker does, and tells what becomes of one key."""

    def __init__(
        self,
        program: StageProgram,
        assignment: Assignment,
        key: KeyValue,
        exclusions: Mapping[int, Exclusion],
    ) -> None:
        """`key`: as messages have it; see `key_of` for that of a text. `exclusions`: see PartitionWorker."""
        self._watch = _Watch()
        self._program = _WatchedProgram(
            program.stage, program.kernels, program.shapes, self._watch, state_key=program.state_key
        )
        self._worker = PartitionWorker(self._program, assignment)
        self._worker.exclusions = exclusions
        self._key = key
        self._letters_topic = dead_letter_topic(assignment.application)
        self._inputs = {entry.stream: entry for entry in program.stage.inputs}
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
        """Folds the next record, and returns what happened to messages of the key in it.

        Sets `stopped` at a message that would stop the processor; nothing can be folded then. Raises LogHoleError
        as PartitionWorker does.
        """
        frame, columns, places = self._look(value)
        self._watch.begin(places)
        counters = self._worker.counters
        before = (counters.duplicates, counters.gaps)
        records: list[OutputRecord] = []
        try:
            records = self._worker.fold(offset, value)
        except PoisonError as error:
            self.stopped = error
        if not places or frame is None or columns is None:
            return []
        counters = self._worker.counters
        verdict = (
            "duplicate"
            if counters.duplicates > before[0]
            else "gap"
            if counters.gaps > before[1]
            else "taken"
        )
        return list(self._events(offset, frame, columns, places, verdict, records))

    def _look(self, value: bytes) -> tuple[Frame | None, Columns | None, list[int]]:
        """A record, its columns, and the places of the key's messages; none when it has no messages to read."""
        try:
            frame = decode(value)
            entry = self._inputs.get(frame.stream)
            readable = frame.kind is FrameKind.DATA and frame.columns is not None
            if entry is None or not readable or frame.schema != entry.schema.fingerprint:
                return None, None, []
            columns = Columns.of_payload(entry.schema, frame.columns or b"")
        except FrameError:
            return None, None, []
        return frame, columns, places_of(entry, columns, self._key)

    def _events(
        self,
        offset: int,
        frame: Frame,
        columns: Columns,
        places: list[int],
        verdict: str,
        records: list[OutputRecord],
    ) -> Iterator[Event]:
        failures = self._failures(frame.stream, places, records)
        if (stopped := self.stopped) is not None:
            # What computations before it made of messages behind it stays nowhere.
            places = [place for place in places if place <= stopped.index]
            self._watch.steps.pop(stopped.index, None)
            failures[stopped.index] = [(stopped.computation, STOP, stopped.reason)]
        left = verdict == "taken" and self.stopped is None
        entered = self._entered(offset, columns, places)
        outputs = self._outputs(frame.stream, columns, entered, failures) if left else {}
        for place in places:
            yield Event(
                offset=offset,
                origin=frame.origin,
                sequence=frame.sequence,
                index=place,
                time_ns=frame.ingest_ns,
                verdict=verdict,
                message=_json_at(columns, place),
                steps=tuple(self._watch.steps.get(place, ())),
                outputs=tuple(outputs.get(place, ())),
                failures=tuple(failures.get(place, ())),
            )

    def _entered(self, offset: int, columns: Columns, places: list[int]) -> list[int]:
        """The places of messages that were not left out of the fold."""
        exclusion = self._worker.exclusions.get(offset)
        if exclusion is None:
            return places
        out = dict(exclusion.of_frame(columns.length))
        return [place for place in places if place not in out and not exclusion.record]

    def _failures(
        self, source: str, places: list[int], records: list[OutputRecord]
    ) -> dict[int, list[tuple[str, OnError, str]]]:
        """By place in the frame. What the sender refused has no key, and its place in its client's frame.

        The letter of a whole record is every message's.
        """
        policies = self._program.stage.on_error()
        found: dict[int, list[tuple[str, OnError, str]]] = {}
        for record in records:
            if record.topic == self._letters_topic:
                for row in decode(record.value).rows or ():
                    letter = DeadLetter.FromString(row)
                    if letter.whole_record:
                        for place in places:
                            found.setdefault(place, []).append(
                                (letter.computation, DEAD_LETTER, letter.reason)
                            )
                        continue
                    if letter.computation == source:
                        continue
                    policy = policies.get(letter.computation, DEAD_LETTER)
                    found.setdefault(letter.index, []).append((letter.computation, policy, letter.reason))
        return found

    def _outputs(
        self,
        stream: str,
        columns: Columns,
        places: list[int],
        failures: dict[int, list[tuple[str, OnError, str]]],
    ) -> dict[int, list[tuple[str, str]]]:
        """What left the stage, by the place of the message that it comes from."""
        found: dict[int, list[tuple[str, str]]] = {}

        def leaves(target: str, place: int, message: str) -> None:
            if all(computation != target for computation, _, _ in failures.get(place, ())):
                found.setdefault(place, []).append((target, message))

        wanted = set(places)
        for output in self._program.stage.outputs:
            if stream in output.streams:
                for place in places:
                    leaves(output.target.name, place, _json_at(columns, place))
            for batch in (each for read in output.streams for each in self._watch.flows.get(read, ())):
                for row, message in enumerate(batch.columns):
                    if batch.source(row) in wanted:
                        text = json_line(batch.schema, message).decode()
                        leaves(output.target.name, batch.source(row), text)
        return found


def places_of(entry: StageInput, columns: Columns, key: KeyValue) -> list[int]:
    """The places of the messages of a key in a frame."""
    if not isinstance(entry.key, str):
        values = FrameKeys(entry, columns).values() if entry.key is not None else []
        return [place for place, value in enumerate(values) if type(value) is type(key) and value == key]
    column = columns.columns[columns.schema.position(entry.key)]
    if isinstance(column, pa.Array):
        kind = str if pa.types.is_string(column.type) else bytes
        if not isinstance(key, kind):
            return []
        same = pc.equal(column, pa.scalar(key, column.type)).to_numpy(zero_copy_only=False)
        return np.flatnonzero(same).tolist()
    wanted = key_column(key, column.dtype)
    return [] if wanted is None else np.flatnonzero(column == wanted[0]).tolist()


def key_of(entry: StageInput, text: str) -> KeyValue:
    """The key that a text stands for, as messages have it: bytes as `frames.text.text_of` writes them.

    A function says by its annotation what it gives, else it is text. Raises ValueError, which says what is expected.
    """
    if not isinstance(entry.key, str):
        returns = getattr(entry.key, "__annotations__", {}).get("return", str)
        kind = {"int": Kind.INT, "bytes": Kind.BYTES}.get(getattr(returns, "__name__", returns), Kind.TEXT)
        return _read_key(text, kind, width=0)
    place = entry.schema.fields[entry.schema.position(entry.key)]
    width = place.dtype.itemsize if place.dtype is not None and place.kind in (Kind.TEXT, Kind.BYTES) else 0
    key = _read_key(text, place.kind, width=width)
    if place.dtype is not None and key_column(key, place.dtype) is None:
        raise ValueError(f"it does not fit {entry.key!r}, {place.dtype}")
    return key


class _Watch:
    """What is noted of one frame: its places that count, steps by place, and what each computation gave."""

    def __init__(self) -> None:
        self.places: frozenset[int] = frozenset()
        self.steps: dict[int, list[Step]] = {}
        self.flows: dict[str, list[Batch]] = {}

    def begin(self, places: list[int]) -> None:
        """Another frame."""
        self.places = frozenset(places)
        self.steps, self.flows = {}, {}


@dataclass(frozen=True, slots=True)
class _WatchedProgram(StageProgram):
    """A program whose computations are watched, and that tells what it skips."""

    watch: _Watch = field(default_factory=_Watch)

    def on_error(self) -> dict[str, OnError]:
        """What is skipped becomes a dead letter here, for its reason: nobody reads it but the history."""
        own = self.stage.on_error()
        return {name: DEAD_LETTER if policy == SKIP else policy for name, policy in own.items()}

    def operators(self, tables: Mapping[str, StateTable]) -> tuple[tuple[tuple[str, ...], Operator], ...]:
        """See StageProgram."""
        plain = StageProgram.operators(self, tables)
        return tuple(
            (
                reads,
                _WatchedStateful(each, self.watch)
                if isinstance(each, StatefulOperator)
                else _Watched(each, self.watch),
            )
            for reads, each in plain
        )


class _Watched:
    """A computation without state."""

    def __init__(self, operator: Operator, watch: _Watch) -> None:
        self.name = operator.name
        self._operator = operator
        self._watch = watch

    def on_batch(self, batch: Batch, dead_letters: DeadLetters) -> Batch:
        """See Operator."""
        given = self._operator.on_batch(batch, dead_letters)
        if self._watch.places:
            self._watch.flows.setdefault(self.name, []).append(given)
        return given


class _WatchedStateful:
    """A stateful computation."""

    def __init__(self, operator: StatefulOperator, watch: _Watch) -> None:
        self.name = operator.name
        self._operator = operator
        self._watch = watch

    def on_batch(self, batch: Batch, dead_letters: DeadLetters) -> Batch:
        """See Operator."""
        if not self._watch.places or not batch.length:
            return self._operator.on_batch(batch, dead_letters)
        table = self._operator.table
        given: list[Batch] = []
        for start, stop, watched in _stretches(batch, self._watch.places):
            part = batch.slice(start, stop)
            key = part.key_values()[0] if watched else None
            before = table.state_of(key) if key is not None else None
            given.append(self._operator.on_batch(part, dead_letters))
            if key is not None:
                step = Step(self.name, before, table.state_of(key))
                self._watch.steps.setdefault(batch.source(start), []).append(step)
        whole = Batch.concatenated(given)
        self._watch.flows.setdefault(self.name, []).append(whole)
        return whole


def _stretches(batch: Batch, places: frozenset[int]) -> Iterator[tuple[int, int, bool]]:
    """(start, stop, whether it is one row of the key): all rows, in their order."""
    start = 0
    for row in range(batch.length):
        if batch.source(row) in places:
            if start < row:
                yield start, row, False
            yield row, row + 1, True
            start = row + 1
    if start < batch.length:
        yield start, batch.length, False


def _json_at(columns: Columns, place: int) -> str:
    return json_line(columns.schema, next(iter(columns.slice(place, place + 1)))).decode()


def _read_key(text: str, kind: Kind, *, width: int) -> KeyValue:
    if kind is Kind.TEXT:
        return text
    if kind is Kind.BYTES:
        return bytes_of(text).ljust(width, b"\0")
    if kind is Kind.BOOL and text in ("true", "false"):
        return int(text == "true")
    try:
        return int(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is no {'whole number' if kind is Kind.INT else 'true or false'}"
        ) from None
