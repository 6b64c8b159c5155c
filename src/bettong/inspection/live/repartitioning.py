"""Gives an application that is stopped another number of partitions. Begun again after any interruption, it goes on.

    checks                 nothing is changed before all of them have passed
    keep "begun"           services do not start any more
    partitions are added   to topics that have too few
    states are divided     and laid beside the snapshots
    checks again
    keep "switched"        the one record: before it all can be thrown away, behind it all that is left is to tidy up
    snapshots in place     at the offset behind the mark of each log
    logs marked            no fold goes past a mark with states of the generation before
    keep "complete"         services may start

All steps but the one record may be done twice. Pure but for what `AtRest` does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from bettong.application.plan import Plan
from bettong.errors import LogError, LogUnavailableError, NotAtRestError, SnapshotError
from bettong.frames.frame import Repartition, repartition_record
from bettong.identifiers import Origin, PartitionId, SequenceNumber
from bettong.inspection.repartition import (
    FoldedTo,
    check_change,
    check_complete,
    check_folded,
    check_stopped,
    origins_of,
    present,
)
from bettong.snapshots import snapshot as codec
from bettong.snapshots.chain import Increment, chains
from bettong.snapshots.partitioning import Partitioning
from bettong.snapshots.references import NamedBytes
from bettong.snapshots.store import SnapshotStore, read_chain
from bettong.v1.snapshot_pb2 import Snapshot
from bettong.worker.partition import Assignment, PartitionWorker
from bettong.worker.repartitioning.heads import NewGeneration, new_heads
from bettong.worker.repartitioning.states import with_states
from bettong.worker.stage_program import StageProgram

# Where divided states are laid beside the snapshots. No series of reference tables is called so: it ends with a
# fingerprint.
_FOLDER = "repartition"


class OnStep(Protocol):
    """Gets a line for people, and where it is known how much of the step is done."""

    def __call__(self, step: str, done: int = 0, total: int = 0, /) -> None:
        """Called before what it says."""


def _say_nothing(_step: str, _done: int = 0, _total: int = 0, /) -> None:
    pass


# By stage and partition, the increments of its newest state.
_Found: TypeAlias = Mapping[str, Sequence[Sequence[bytes]]]
# By stage and partition, where its log ends.
_Ends: TypeAlias = Mapping[str, list[int]]


class AtRest(Protocol):
    """What an application is made of, at rest. Methods block, and raise LogError and StoreError."""

    def running(self) -> Collection[str]:
        """Who lives, by their own word."""

    def kept(self) -> Partitioning | None:
        """The newest record of how many partitions there are."""

    def keep(self, partitioning: Partitioning) -> None:
        """Appends a record; it is durable then."""

    def counts(self) -> Mapping[str, int]:
        """How many partitions each topic has, 0 for one that does not exist."""

    def add_partitions(self, partitions: int) -> None:
        """No topic has fewer then."""

    def ends(self) -> Mapping[PartitionId, int]:
        """Where the log of each partition of each stage ends, those out of use included."""

    def mark(self, partition: PartitionId, offset: int, value: bytes) -> None:
        """Appends a record to a stage's log, at an offset, unless it is there already; it is durable then.

        Raises LogError where another one is there.
        """

    def acknowledged(self, origins: Iterable[Origin]) -> Mapping[Origin, SequenceNumber]:
        """Up to where senders know the frames of clients to be durable."""

    def begin_anew(self, offsets: Mapping[PartitionId, int]) -> None:
        """What is not of the log learns where each partition goes on, and forgets what it knows of before."""


@dataclass(frozen=True, slots=True)
class Repartitioned:
    """What was done, or would be. `old` equals `new` where there is nothing to do."""

    old: int
    new: int
    states: Mapping[str, int]
    was_switched: bool = False


class Repartitioning:
    """Of one application. `program`: gives that of a stage. `on_step`: told of each step before it is done."""

    def __init__(
        self,
        plan: Plan,
        parts: AtRest,
        snapshots: SnapshotStore,
        beside: NamedBytes,
        *,
        program: Callable[[str], StageProgram],
        frame_bytes_max: int,
        on_step: OnStep = _say_nothing,
    ) -> None:
        self._plan = plan
        self._parts = parts
        self._snapshots = snapshots
        self._beside = beside
        self._program = program
        self._frame_bytes_max = frame_bytes_max
        self._on_step = on_step

    def change(
        self, to: int, *, given_up: Collection[Origin] = frozenset(), dry_run: bool = False
    ) -> Repartitioned:
        """From now on there are `to` partitions. `dry_run`: only says what would be, after all checks.

        `given_up`: clients whose frames that may have come in part count as taken. Raises NotAtRestError where the
        application is not at rest; then, and after any other error before the switch, nothing that counts is changed.
        """
        now = self._present()
        check_change(now, self._plan.application, to)
        if now.change is not None and now.change.switched:
            old = now.change.partitions
            if not dry_run:
                self._finish(now)
            return Repartitioned(old, to, {}, was_switched=True)
        if now.partitions == to and now.change is None:
            return Repartitioned(to, to, {})
        check_stopped(self._parts.running(), self._plan.application)
        found, saved = self._at_rest(now.partitions, given_up)
        if dry_run:
            counts = {stage: sum(map(_keys, workers)) for stage, workers in self._workers(found)}
            return Repartitioned(now.partitions, to, counts)
        begun = now.begun(to)
        self._on_step("no service starts from now on")
        self._parts.keep(begun)
        self._on_step(f"topics get {to} partitions, where they have fewer")
        self._parts.add_partitions(to)
        ends = self._ends_since(saved, max(now.partitions, to))
        counts = self._divide(begun, found, ends)
        check_stopped(self._parts.running(), self._plan.application)
        self._ends_since(ends, max(now.partitions, to))
        switched = begun.switched({stage: tuple(end + 1 for end in each) for stage, each in ends.items()})
        self._on_step(f"from now on there are {to} partitions")
        self._parts.keep(switched)
        self._finish(switched)
        return Repartitioned(now.partitions, to, counts)

    def take_back(self) -> Repartitioned:
        """Ends a change that is not switched yet: everything is as it was, but for partitions that topics have got.

        Raises LogError where there is none.
        """
        now, application = self._present(), self._plan.application
        if now.change is None:
            raise LogError(
                f"application {application!r} is not being repartitioned: it has {now.partitions} partitions; to change"
                " that, say --partitions"
            )
        if now.change.switched:
            raise LogError(
                f"application {application!r} has switched to {now.partitions} partitions: finish that with"
                f" --partitions {now.partitions}; then --partitions {now.change.partitions} gives it the number that it"
                " had"
            )
        self._clear()
        self._parts.keep(now.completed())
        return Repartitioned(now.change.partitions, now.partitions, {})

    def _present(self) -> Partitioning:
        return present(self._parts.kept(), self._parts.counts())

    def _at_rest(self, partitions: int, given_up: Collection[Origin]) -> tuple[_Found, _Ends]:
        """The newest chain of each partition, which is of the end of its log. Raises NotAtRestError."""
        self._on_step("is everything folded, saved and acknowledged?")
        ends = self._ends_of(self._parts.ends(), partitions)
        found = {
            stage.name: [self._chain(PartitionId(stage.name, number)) for number in range(partitions)]
            for stage in self._plan.stages
        }
        heads = self._heads(found)
        check_folded(
            {
                PartitionId(stage, number): FoldedTo(head.offset, ends[stage][number])
                for stage, of_stage in heads.items()
                for number, head in enumerate(of_stage)
            }
        )
        check_complete(heads, self._parts.acknowledged(sorted(origins_of(heads))), given_up)
        return found, ends

    def _ends_since(self, known: _Ends, partitions: int) -> _Ends:
        """Where logs end now. Raises NotAtRestError where one ends elsewhere than before."""
        ends = self._ends_of(self._parts.ends(), partitions)
        if any(ends[stage][: len(before)] != before for stage, before in known.items()):
            raise NotAtRestError(
                f"the log of {self._plan.application!r} has grown meanwhile: something of it runs and does not say so;"
                " stop it, and try again"
            )
        return ends

    def _chain(self, id_: PartitionId) -> list[bytes]:
        """The increments of a partition's newest state; none where it has never saved any."""
        for chain in chains(self._snapshots.increments(id_)):
            kept = read_chain(self._snapshots, id_, chain)
            if kept is not None:
                return kept
        return []

    def _heads(self, found: _Found) -> dict[str, list[Snapshot]]:
        return {
            stage: [self._head(PartitionId(stage, number), chain) for number, chain in enumerate(of_stage)]
            for stage, of_stage in found.items()
        }

    def _head(self, id_: PartitionId, chain: Sequence[bytes]) -> Snapshot:
        """The newest of them without its states."""
        if not chain:
            return Snapshot(application=self._plan.application, stage=id_.stage, partition=id_.partition)
        head = codec.decode(chain[-1], application=self._plan.application, partition=id_)
        for name in ("states", "last_ns", "last_event_ns", "ended"):
            head.ClearField(name)
        return head

    def _workers(self, found: _Found) -> Iterator[tuple[str, list[PartitionWorker]]]:
        """Of each stage, one after the other, workers with the states of its partitions."""
        for stage, of_stage in found.items():
            workers = []
            for number, chain in enumerate(of_stage):
                assignment = Assignment(self._plan.application, number, len(of_stage), self._frame_bytes_max)
                workers.append(PartitionWorker(self._program(stage), assignment))
                for each in chain:
                    workers[-1].restore(each)
            yield stage, workers

    def _ends_of(self, ends: Mapping[PartitionId, int], partitions: int) -> _Ends:
        wanted = {
            stage.name: [PartitionId(stage.name, number) for number in range(partitions)]
            for stage in self._plan.stages
        }
        if missing := [str(id_) for of_stage in wanted.values() for id_ in of_stage if id_ not in ends]:
            raise LogUnavailableError(
                f"Kafka does not know of {missing[0]} and {len(missing) - 1} partitions more yet: try again in a moment"
            )
        return {stage: [ends[id_] for id_ in of_stage] for stage, of_stage in wanted.items()}

    def _divide(self, begun: Partitioning, found: _Found, ends: _Ends) -> dict[str, int]:
        """Lays the snapshots of the new partitions beside those that are there; by stage, how many states."""
        assert begun.change is not None  # noqa: S101 - it is just being made
        partitions, counts = begun.change.partitions, dict[str, int]()
        offsets = {stage: [end + 1 for end in each[:partitions]] for stage, each in ends.items()}
        new = NewGeneration(begun.generation + 1, partitions, offsets)
        self._clear()
        heads, done = new_heads(self._plan, self._heads(found), new), 0
        for stage, workers in self._workers(found):
            counts[stage] = sum(map(_keys, workers))
            own = {id_: head for id_, head in heads.items() if id_.stage == stage}
            for id_, data in with_states(self._program(stage), workers, own):
                done += 1
                self._on_step(f"states of stage {stage} are divided by their keys", done, len(heads))
                self._beside.put(_FOLDER, _name(id_, ends), data)
        return counts

    def _finish(self, switched: Partitioning) -> None:
        """All that is left to do behind the switch. May be done again from the beginning."""
        begins = {
            PartitionId(stage, number): offset
            for stage, of_stage in switched.begins.items()
            for number, offset in enumerate(of_stage)
        }
        self._on_step("the new snapshots take their places")
        for id_, offset in begins.items():
            if id_.partition < switched.partitions:
                self._put_in_place(id_, offset, switched.begins)
        self._on_step("the logs are marked")
        mark = Repartition(switched.generation, switched.partitions)
        for id_, offset in begins.items():
            self._parts.mark(id_, offset - 1, repartition_record(id_.stage, mark))
        self._parts.begin_anew(begins)
        self._on_step("services may start")
        self._clear()
        self._parts.keep(switched.completed())

    def _put_in_place(self, id_: PartitionId, offset: int, stages: Collection[str]) -> None:
        increment = Increment(offset, 0, offset)
        data = self._beside.get(_FOLDER, _name(id_, stages))
        if data is not None:
            self._snapshots.save(id_, increment, data)
        elif increment not in self._snapshots.increments(id_):
            raise SnapshotError(
                f"{id_}: its snapshot at {offset} is neither in place nor beside the others, where it was laid: the"
                " store has lost it. Restore the store from a copy, or start under another application name"
            )

    def _clear(self) -> None:
        for name in self._beside.names(_FOLDER):
            self._beside.remove(_FOLDER, name)


def _name(id_: PartitionId, stages: Collection[str]) -> str:
    """Under which a snapshot lies beside the others: stages by number, for their names may hold anything."""
    return f"{sorted(stages).index(id_.stage)}-{id_.partition}"


def _keys(worker: PartitionWorker) -> int:
    return worker.keys
