"""Gives an application that is stopped another number of partitions. Begun again after any interruption, it goes on.

    checks                 nothing is changed before all of them have passed
    states are divided     to see that it can be done: nothing is kept of it
    keep "begun"           services do not start any more
    partitions are added   to topics that have too few
    checks again
    keep "switched"        the one record: before it nothing is changed that counts, behind it all that is left is done
    states are divided     from the snapshots of the generation before, which stay until another one is saved
    snapshots in place     at the offset behind the mark of each log
    logs marked            no fold goes past a mark with states of the generation before
    keep "complete"        services may start

All steps but the one record may be done twice. Of two runs the one that has begun last goes on. The other one ends with
an error: it reads its own record back, and another one counts (`snapshots.partitioning`).

Pure but for what `AtRest` and the store of snapshots do.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from bettong.application.plan import Plan
from bettong.errors import BettongError, LogError, LogUnavailableError, NotAtRestError, SnapshotError
from bettong.frames.frame import Repartition, repartition_record
from bettong.identifiers import Origin, PartitionId, SequenceNumber
from bettong.inspection.live.newest_states import Found, NewestStates
from bettong.inspection.repartition import (
    FoldedTo,
    check_change,
    check_complete,
    check_folded,
    check_none_left_out,
    check_stages,
    check_stopped,
    origins_of,
    overtaken,
    present,
)
from bettong.snapshots.chain import Increment
from bettong.snapshots.partitioning import Partitioning
from bettong.snapshots.store import SnapshotStore
from bettong.v1.snapshot_pb2 import Snapshot
from bettong.worker.repartitioning.heads import NewGeneration
from bettong.worker.stage_program import StageProgram


class OnStep(Protocol):
    """Gets a line for people, and where it is known how much of the step is done."""

    def __call__(self, step: str, done: int = 0, total: int = 0, /) -> None:
        """Called before what it says."""


def _say_nothing(_step: str, _done: int = 0, _total: int = 0, /) -> None:
    pass


# By stage and partition, where its log ends.
_Ends: TypeAlias = Mapping[str, list[int]]


class AtRest(Protocol):
    """What an application is made of, at rest. Methods block, and raise LogError and StoreError."""

    def running(self) -> Collection[str]:
        """Who lives, by their own word."""

    def kept(self) -> Partitioning | None:
        """The newest record that counts, of how many partitions there are."""

    def keep(self, partitioning: Partitioning) -> None:
        """Appends a record; it is durable then. Whether it counts, `kept` says."""

    def counts(self) -> Mapping[str, int]:
        """How many partitions each topic has, 0 for one that does not exist."""

    def stages(self) -> Collection[str]:
        """All stages that have a log, those that the application's file does not have included."""

    def add_partitions(self, partitions: int, *, only_check: bool = False) -> None:
        """No topic has fewer then. `only_check`: raises LogError where that would be refused."""

    def ends(self) -> Mapping[PartitionId, int]:
        """Where the log of each partition of each stage ends, those out of use included."""

    def mark(self, marks: Mapping[PartitionId, tuple[int, bytes]]) -> None:
        """Appends a record to each of these logs, at an offset, unless it is there already; they are durable then.

        Raises LogError where another one is there.
        """

    def acknowledged(self, origins: Iterable[Origin]) -> Mapping[Origin, SequenceNumber]:
        """Up to where senders know the frames of clients to be durable."""

    def begin_anew(self, offsets: Mapping[PartitionId, int]) -> None:
        """What is not of the log forgets what it knows of before, and learns where these partitions go on."""


@dataclass(frozen=True, slots=True)
class Repartitioned:
    """What was done, or would be. `old` equals `new` where there is nothing to do."""

    old: int
    new: int
    states: Mapping[str, int]
    was_switched: bool = False


class Repartitioning:
    """Of one application. `program`: gives that of a stage. `on_step`: told of each step before it is done.

    `run`: what no other run is called.
    `snapshot_bytes_max`: the largest snapshot that the store takes; None where it has no limit of its own.
    """

    def __init__(
        self,
        plan: Plan,
        parts: AtRest,
        snapshots: SnapshotStore,
        *,
        run: str,
        program: Callable[[str], StageProgram],
        frame_bytes_max: int,
        snapshot_bytes_max: int | None = None,
        on_step: OnStep = _say_nothing,
    ) -> None:
        self._plan = plan
        self._parts = parts
        self._run = run
        self._snapshots = snapshots
        self._states = NewestStates(plan, snapshots, program=program, frame_bytes_max=frame_bytes_max)
        self._snapshot_bytes_max = snapshot_bytes_max
        self._on_step = on_step

    def change(
        self, to: int, *, given_up: Collection[str] = frozenset(), dry_run: bool = False
    ) -> Repartitioned:
        """From now on there are `to` partitions. `dry_run`: only says what would be, after all checks.

        `given_up`: clients whose frames that may have come in part count as taken; see `check_complete`. Raises
        NotAtRestError where the application is not at rest; then, and after any other error before the switch, nothing
        that counts is changed.
        """
        kept = self._parts.kept()
        now = present(kept, self._parts.counts())
        check_change(now, self._plan.application, to)
        if now.change is not None and now.change.switched:
            check_stages(now, (stage.name for stage in self._plan.stages))
            counts = {} if dry_run else self._finish(now)
            return Repartitioned(now.change.partitions, to, counts, was_switched=True)
        if now.partitions == to and now.change is None:
            return self._make_again(now, dry_run=dry_run)
        check_none_left_out(self._parts.stages(), (stage.name for stage in self._plan.stages))
        with self._counting(kept):
            check_stopped(self._parts.running(), self._plan.application)
            self._parts.add_partitions(to, only_check=True)
            found, saved = self._at_rest(now.partitions, given_up)
            counts = self._try_to_divide(found, to)
        if dry_run:
            return Repartitioned(now.partitions, to, counts)
        begun = now.begun(to, self._run)
        self._on_step("no service starts from now on")
        self._keep(begun)
        with self._counting(begun):
            self._on_step(f"topics get {to} partitions, where they have fewer")
            self._parts.add_partitions(to)
            check_stopped(self._parts.running(), self._plan.application)
            ends = self._ends_since(saved, max(now.partitions, to))
        switched = begun.switched({stage: tuple(end + 1 for end in each) for stage, each in ends.items()})
        self._on_step(f"from now on there are {to} partitions")
        self._keep(switched)
        return Repartitioned(now.partitions, to, self._finish(switched))

    def take_back(self) -> Repartitioned:
        """Ends a change that is not switched yet: everything is as it was, but for partitions that topics have got.

        Raises LogError where there is none.
        """
        kept, application = self._parts.kept(), self._plan.application
        now = present(kept, self._parts.counts()) if kept is None else kept
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
        self._keep(now.completed())
        return Repartitioned(now.change.partitions, now.partitions, {})

    def _keep(self, record: Partitioning) -> None:
        """Raises LogError where it does not count, for another run was faster."""
        self._parts.keep(record)
        self._check_counts(record)

    @contextmanager
    def _counting(self, record: Partitioning | None) -> Iterator[None]:
        """What is done while the record is the newest one: LogError where it is not, whatever fails for that reason."""
        try:
            yield
        except BettongError:
            self._check_counts(record)
            raise
        self._check_counts(record)

    def _check_counts(self, record: Partitioning | None) -> None:
        """Raises LogError where another record is the newest one by now."""
        found = self._parts.kept()
        if found != record:
            raise LogError(overtaken(found, self._plan.application))

    def _at_rest(self, partitions: int, given_up: Collection[str]) -> tuple[Found, _Ends]:
        """The newest state of each partition, which is of the end of its log. Raises NotAtRestError."""
        self._on_step("is everything folded, saved and acknowledged?")
        ends = self._ends_of(self._parts.ends(), partitions)
        found = self._states.newest(partitions)
        heads = {stage: [each.head for each in of_stage] for stage, of_stage in found.items()}
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

    def _try_to_divide(self, found: Found, to: int) -> dict[str, int]:
        """By stage, how many states would be divided. Raises what would be in the way behind the switch."""
        offsets = {stage.name: [1] * to for stage in self._plan.stages}

        def check(id_: PartitionId, data: bytes) -> None:
            if self._snapshot_bytes_max is not None and len(data) > self._snapshot_bytes_max:
                raise SnapshotError(
                    f"{id_}: with {to} partitions its snapshot would be {len(data):,} bytes, the store takes at most"
                    f" {self._snapshot_bytes_max:,}; choose more partitions, or keep snapshots elsewhere"
                    " (BETTONG_SNAPSHOTS)"
                )

        return self._divide(
            found, NewGeneration(1, to, offsets), "can the states of stage {} be divided?", check
        )

    def _divide(
        self, found: Found, new: NewGeneration, step: str, then: Callable[[PartitionId, bytes], None]
    ) -> dict[str, int]:
        """Gives each new snapshot to `then`; by stage, how many states there are."""
        counts = {stage.name: 0 for stage in self._plan.stages}
        total = len(counts) * new.partitions
        for done, (id_, data, states) in enumerate(self._states.divided(found, new), start=1):
            counts[id_.stage] += states
            self._on_step(step.format(id_.stage), done, total)
            then(id_, data)
        return counts

    def _finish(self, switched: Partitioning) -> dict[str, int]:
        """All that is left to do behind the switch; by stage, how many states there are.

        May be done again from the beginning.
        """
        begins = switched.by_partition()
        with self._counting(switched):
            in_use = {id_ for id_ in begins if id_.partition < switched.partitions}
            counts = self._put_in_place(switched, begins, in_use)
            self._on_step("the logs are marked")
            mark = Repartition(switched.generation, switched.partitions)
            self._parts.mark(
                {id_: (begin - 1, repartition_record(id_.stage, mark)) for id_, begin in begins.items()}
            )
        self._parts.begin_anew({id_: begins[id_] for id_ in in_use})
        self._on_step("services may start")
        self._keep(switched.completed())
        return counts

    def _make_again(self, now: Partitioning, *, dry_run: bool) -> Repartitioned:
        """Puts snapshots in place that the store has lost since a change, where those of before are still there.

        Nothing can have been folded without them.
        """
        begins = now.by_partition()
        lost = {
            id_
            for id_, begin in begins.items()
            if id_.partition < now.partitions
            and all(each.offset < begin for each in self._snapshots.increments(id_))
        }
        if not lost:
            return Repartitioned(now.partitions, now.partitions, {})
        check_stages(now, (stage.name for stage in self._plan.stages))
        check_stopped(self._parts.running(), self._plan.application)
        counts: dict[str, int] = {}
        if not dry_run:
            # First, for behind it nothing is lost any more. What is forgotten is of a start in between, without them.
            self._parts.begin_anew({id_: begins[id_] for id_ in lost})
            counts = self._put_in_place(now, begins, lost)
        return Repartitioned(now.before, now.partitions, counts, was_switched=True)

    def _put_in_place(
        self, now: Partitioning, begins: Mapping[PartitionId, int], missing: Collection[PartitionId]
    ) -> dict[str, int]:
        """Divides the states as they were at the switch, and saves those of some partitions where these begin."""
        found = self._states.newest(now.before, below=begins)
        for stage, of_stage in found.items():
            for number, each in enumerate(of_stage):
                _check_not_lost(PartitionId(stage, number), each.head, begins)
        found = self._states.lasting(found, begins)

        def put(id_: PartitionId, data: bytes) -> None:
            offset = begins[id_]
            if id_ in missing:
                self._snapshots.save(id_, Increment(offset, 0, offset), data)

        new = NewGeneration(now.generation, now.partitions, now.begins)
        return self._divide(found, new, "states of stage {} are divided by their keys", put)


def _check_not_lost(id_: PartitionId, head: Snapshot, begins: Mapping[PartitionId, int]) -> None:
    end = begins[id_] - 1
    if head.offset != end:
        raise SnapshotError(
            f"{id_}: its newest snapshot of before the switch is at {head.offset}, at the switch there was one at"
            f" {end}: the store has lost it. Restore the store from a copy, or start under another application name"
        )
