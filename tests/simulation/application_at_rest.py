"""An application at rest in a folder, and a repartitioning of it that is cut off at any call."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any

from bettong.edges.directory_snapshots import DirectorySnapshots
from bettong.errors import LogError
from bettong.identifiers import Origin, PartitionId, SequenceNumber
from bettong.inspection.live.repartitioning import Repartitioned, Repartitioning
from bettong.snapshots.chain import Increment, chains
from bettong.snapshots.partitioning import Partitioning, newest
from bettong.snapshots.store import read_chain
from bettong.testing import AppSession
from bettong.testing.running import ReadyApplication
from bettong.worker.partition import Assignment, PartitionWorker
from tests.samples.worker import FRAME_BYTES_MAX, Limit, Reading, meters_application

# Partitions at the beginning.
FIRST = 3


@lru_cache(maxsize=1)
def ready() -> ReadyApplication:
    return ReadyApplication(meters_application(), compiled=False)


@lru_cache(maxsize=1)
def kept() -> dict[PartitionId, tuple[Increment, bytes]]:
    """What the partitions of an application have saved when it was stopped."""
    session = AppSession(ready(), partitions=FIRST)
    for number in range(40):
        meter = f"m{number % 7}"
        session.step(("readings", Reading(meter, number)), ("limits", Limit(meter, number % 3)))
    partitions = session._processor.partitions
    return {id_: each.worker.increment() for id_, each in partitions.items() if each.worker.next_offset}


@dataclass
class Rest:
    """AtRest in memory. `logs`: of each partition, what lies behind its first `ends` records."""

    first_ends: dict[PartitionId, int]
    topics: dict[str, int]
    known: dict[Origin, SequenceNumber]
    records: list[bytes] = field(default_factory=list)
    logs: dict[PartitionId, list[bytes]] = field(default_factory=dict)
    begun: dict[PartitionId, int] = field(default_factory=dict)
    live: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    # What the broker says to whoever would add partitions.
    refusal: str = ""

    def running(self) -> Collection[str]:
        return self.live

    @property
    def record(self) -> Partitioning | None:
        """The newest one that counts."""
        return newest(map(Partitioning.decode, self.records))

    def kept(self) -> Partitioning | None:
        return self.record

    def keep(self, partitioning: Partitioning) -> None:
        self.records.append(partitioning.encode())

    def counts(self) -> Mapping[str, int]:
        return dict(self.topics)

    def stages(self) -> Collection[str]:
        return [*(stage.name for stage in ready().plan.stages), *self.left_out]

    def add_partitions(self, partitions: int, *, only_check: bool = False) -> None:
        if self.refusal and any(count < partitions for count in self.topics.values()):
            raise LogError(self.refusal)
        if not only_check:
            self.topics = {topic: max(count, partitions) for topic, count in self.topics.items()}

    def ends(self) -> Mapping[PartitionId, int]:
        count = max(self.topics.values())
        ids = [PartitionId(stage.name, each) for stage in ready().plan.stages for each in range(count)]
        return {id_: self.first_ends.get(id_, 0) + len(self.logs.get(id_, ())) for id_ in ids}

    def mark(self, marks: Mapping[PartitionId, tuple[int, bytes]]) -> None:
        for partition, (offset, value) in marks.items():
            log = self.logs.setdefault(partition, [])
            at = offset - self.first_ends.get(partition, 0)
            if len(log) == at:
                log.append(value)
            if log[at] != value:
                raise LogError(f"{partition} has another record at {offset}")

    def acknowledged(self, origins: Iterable[Origin]) -> Mapping[Origin, SequenceNumber]:
        return {each: self.known[each] for each in origins if each in self.known}

    def begin_anew(self, offsets: Mapping[PartitionId, int]) -> None:
        self.begun = dict(offsets)


class CutOffError(Exception):
    """The process was killed, or what it asked went away."""


class Fragile:
    """Passes calls on to `of`, until they are cut off: before or after the last one that is allowed."""

    def __init__(self, of: Any, cut: Cut | Pause) -> None:
        self._of = of
        self._cut = cut

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._of, name)

        def call(*arguments: Any, **named: Any) -> Any:
            return self._cut.around(lambda: method(*arguments, **named))

        return call


@dataclass
class Cut:
    """`at`: which call is the last one. `done`: whether it is carried out."""

    at: int
    done: bool
    calls: int = 0

    def around(self, call: Callable[[], Any]) -> Any:
        self.calls += 1
        if self.calls == self.at and not self.done:
            raise CutOffError
        result = call()
        if self.calls == self.at:
            raise CutOffError
        return result


@dataclass
class Pause:
    """Before its call number `at`, `then` happens."""

    at: int
    then: Callable[[], None]
    calls: int = 0

    def around(self, call: Callable[[], Any]) -> Any:
        self.calls += 1
        if self.calls == self.at:
            self.then()
        return call()


class World:
    """An application at rest in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._runs = count()
        self.snapshots = DirectorySnapshots(folder / "kept")
        for id_, (increment, data) in kept().items():
            self.snapshots.save(id_, increment, data)
        self.rest = Rest(
            {id_: increment.offset for id_, (increment, _) in kept().items()},
            dict.fromkeys(ready().plan.topics, FIRST),
            {Origin(f"{each}/client"): SequenceNumber(40) for each in ("readings", "limits")},
        )

    def repartitioning(
        self, cut: Cut | Pause | None = None, *, snapshot_bytes_max: int | None = None
    ) -> Repartitioning:
        fragile = (lambda of: of) if cut is None else (lambda of: Fragile(of, cut))
        return Repartitioning(
            ready().plan,
            fragile(self.rest),
            fragile(self.snapshots),
            run=f"run {next(self._runs)}",
            program=lambda stage: ready().programs[stage],
            frame_bytes_max=FRAME_BYTES_MAX,
            snapshot_bytes_max=snapshot_bytes_max,
        )

    def change(
        self, to: int, cut: Cut | Pause | None = None, given_up: Collection[str] = ()
    ) -> Repartitioned:
        return self.repartitioning(cut).change(to, given_up=given_up)

    def ends_as(self) -> dict[str, Any]:
        """All that counts: what is kept, the logs, and the bytes of the newest states."""
        ids = [PartitionId(stage.name, each) for stage in ready().plan.stages for each in range(8)]
        return {
            "record": self.settled(),
            "logs": self.rest.logs,
            "states": {id_: self.newest(id_) for id_ in ids},
        }

    def settled(self) -> Partitioning | None:
        """What is kept, whichever run has done it."""
        record = self.rest.record
        return None if record is None else replace(record, run="")

    def newest(self, id_: PartitionId) -> bytes | None:
        found = self.chain(id_)
        return found[-1] if found else None

    def chain(self, id_: PartitionId) -> list[bytes]:
        """The bytes of the increments of the newest state, oldest first."""
        found = chains(self.snapshots.increments(id_))
        return (read_chain(self.snapshots, id_, found[0]) or []) if found else []

    def states(self, partitions: int) -> dict[str, dict[Any, Any]]:
        """All states by computation and key, as the newest snapshots have them."""
        found: dict[str, dict[Any, Any]] = {}
        for stage in ready().plan.stages:
            for number in range(partitions):
                worker = self.worker(PartitionId(stage.name, number), partitions)
                for name, table in worker.tables.items():
                    found.setdefault(name, {}).update(table.items())
        return found

    def worker(self, id_: PartitionId, partitions: int) -> PartitionWorker:
        assignment = Assignment("meters", id_.partition, partitions, FRAME_BYTES_MAX)
        worker = PartitionWorker(ready().programs[id_.stage], assignment)
        for data in self.chain(id_):
            worker.restore(data)
        return worker
