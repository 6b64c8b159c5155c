"""Changes the number of partitions of a stopped application. Run again after any interruption, it resumes.

    checks                 nothing is changed before all of them have passed
    states are divided     to see that it can be done: the result is dropped
    keep "begun"           services do not start any more
    partitions are added   to topics that have too few
    checks again
    keep "switched"        the commit: before it no effective change is made, after it the rest must be done
    states are divided     from the previous generation's snapshots, which stay until another one is saved
    snapshots saved        at the offset after the mark of each log
    logs marked            no fold goes past a mark with states of the previous generation
    keep "complete"        services may start

All steps but the commit may be done twice. Of two runs, the one that began last continues. The other ends with an
error: it reads its record back and finds that another one is valid (`snapshots.partitioning`).

Pure but for `AtRest` and the snapshot store.
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
    """Gets a text for people, and how much of the step is done, if known."""

    def __call__(self, step: str, done: int = 0, total: int = 0, /) -> None:
        """Called before the step."""


def _say_nothing(_step: str, _done: int = 0, _total: int = 0, /) -> None:
    pass


# By stage and partition, where its log ends.
_Ends: TypeAlias = Mapping[str, list[int]]


class AtRest(Protocol):
    """The parts of an application at rest. Methods block, and raise LogError and StoreError."""

    def running(self) -> Collection[str]:
        """The instances whose records are live."""

    def kept(self) -> Partitioning | None:
        """The newest valid record of how many partitions there are."""

    def keep(self, partitioning: Partitioning) -> None:
        """Appends a record durably. Whether it is valid, `kept` tells."""

    def counts(self) -> Mapping[str, int]:
        """How many partitions each topic has, 0 for one that does not exist."""

    def stages(self) -> Collection[str]:
        """All stages that have a log, including those that the application's file does not have."""

    def add_partitions(self, partitions: int, *, only_check: bool = False) -> None:
        """Gives each topic at least so many. `only_check`: only raises LogError where that would be refused."""

    def ends(self) -> Mapping[PartitionId, int]:
        """Where the log of each partition of each stage ends, including those out of use."""

    def mark(self, marks: Mapping[PartitionId, tuple[int, bytes]]) -> None:
        """Appends a record to each of these logs durably, at an offset, unless it is there already.

        Raises LogError where another one is there.
        """

    def acknowledged(self, origins: Iterable[Origin]) -> Mapping[Origin, SequenceNumber]:
        """Up to which frame each client's frames are durable, as senders know."""

    def begin_anew(self, offsets: Mapping[PartitionId, int]) -> None:
        """Resets what is stored outside the log, to start these partitions at these offsets."""


@dataclass(frozen=True, slots=True)
class Repartitioned:
    """The result, or that of a dry run. `old` equals `new` where there is nothing to do."""

    old: int
    new: int
    states: Mapping[str, int]
    was_switched: bool = False


class Repartitioning:
    """Of one application. `program`: returns a stage's. `on_step`: called before each step.

    `run`: a unique id of this run.
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
        """Changes the number of partitions to `to`. `dry_run`: only reports what would be done, after all checks.

        `given_up`: clients whose frames that may have arrived in part count as taken; see `check_complete`. Raises
        NotAtRestError where the application is not at rest; then, and after any other error before the switch, no
        effective change was made.
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
        """Undoes a change that has not switched yet. Only partitions that were added to topics stay.

        Raises LogError where there is none.
        """
        kept, application = self._parts.kept(), self._plan.application
        now = present(kept, self._parts.counts()) if kept is None else kept
        if now.change is None:
            raise LogError(
                f"application {application!r} is not being repartitioned: it has {now.partitions} partitions; to change"
                " that, give --partitions"
            )
        if now.change.switched:
            raise LogError(
                f"application {application!r} has switched to {now.partitions} partitions: finish that with"
                f" --partitions {now.partitions}; then --partitions {now.change.partitions} restores the old number"
            )
        self._keep(now.completed())
        return Repartitioned(now.change.partitions, now.partitions, {})

    def _keep(self, record: Partitioning) -> None:
        """Appends a record. Raises LogError where it is not valid because another run was faster."""
        self._parts.keep(record)
        self._check_counts(record)

    @contextmanager
    def _counting(self, record: Partitioning | None) -> Iterator[None]:
        """Raises LogError unless the record is still the newest one at the end, or when the body fails."""
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
        """The newest state of each partition, as of the end of its log. Raises NotAtRestError."""
        self._on_step("checking that everything is folded, saved and acknowledged")
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
                f"the log of {self._plan.application!r} has grown meanwhile: a service runs that does not report;"
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
                f"Kafka does not know {missing[0]} and {len(missing) - 1} more partitions yet: try again in a moment"
            )
        return {stage: [ends[id_] for id_ in of_stage] for stage, of_stage in wanted.items()}

    def _try_to_divide(self, found: Found, to: int) -> dict[str, int]:
        """By stage, how many states would be divided. Raises errors that would occur after the switch."""
        offsets = {stage.name: [1] * to for stage in self._plan.stages}

        def check(id_: PartitionId, data: bytes) -> None:
            if self._snapshot_bytes_max is not None and len(data) > self._snapshot_bytes_max:
                raise SnapshotError(
                    f"{id_}: with {to} partitions its snapshot would be {len(data):,} bytes, the store takes at most"
                    f" {self._snapshot_bytes_max:,}; choose more partitions, or keep snapshots elsewhere"
                    " (BETTONG_SNAPSHOTS)"
                )

        return self._divide(
            found, NewGeneration(1, to, offsets), "checking that the states of stage {} can be divided", check
        )

    def _divide(
        self, found: Found, new: NewGeneration, step: str, then: Callable[[PartitionId, bytes], None]
    ) -> dict[str, int]:
        """Passes each new snapshot to `then`; returns by stage how many states there are."""
        counts = {stage.name: 0 for stage in self._plan.stages}
        total = len(counts) * new.partitions
        for done, (id_, data, states) in enumerate(self._states.divided(found, new), start=1):
            counts[id_.stage] += states
            self._on_step(step.format(id_.stage), done, total)
            then(id_, data)
        return counts

    def _finish(self, switched: Partitioning) -> dict[str, int]:
        """Does all that is left after the switch; returns by stage how many states there are.

        May be done again from the beginning.
        """
        begins = switched.by_partition()
        with self._counting(switched):
            in_use = {id_ for id_ in begins if id_.partition < switched.partitions}
            counts = self._save_divided(switched, begins, in_use)
            self._on_step("marking the logs")
            mark = Repartition(switched.generation, switched.partitions)
            self._parts.mark(
                {id_: (begin - 1, repartition_record(id_.stage, mark)) for id_, begin in begins.items()}
            )
        self._parts.begin_anew({id_: begins[id_] for id_ in in_use})
        self._on_step("services may start")
        self._keep(switched.completed())
        return counts

    def _make_again(self, now: Partitioning, *, dry_run: bool) -> Repartitioned:
        """Saves snapshots again that the store has lost since a change, where the earlier ones still exist.

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
            # First, since after saving nothing is lost any more. Only a start without these snapshots is forgotten.
            self._parts.begin_anew({id_: begins[id_] for id_ in lost})
            counts = self._save_divided(now, begins, lost)
        return Repartitioned(now.before, now.partitions, counts, was_switched=True)

    def _save_divided(
        self, now: Partitioning, begins: Mapping[PartitionId, int], missing: Collection[PartitionId]
    ) -> dict[str, int]:
        """Divides the states of the moment of the switch, and saves those of `missing` partitions at their begins."""
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
        return self._divide(found, new, "dividing the states of stage {} by key", put)


def _check_not_lost(id_: PartitionId, head: Snapshot, begins: Mapping[PartitionId, int]) -> None:
    end = begins[id_] - 1
    if head.offset != end:
        raise SnapshotError(
            f"{id_}: its newest snapshot from before the switch is at {head.offset}, but at the switch there was one at"
            f" {end}: the store has lost it. Restore the store from a copy, or start under another application name"
        )
