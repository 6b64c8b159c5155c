"""Divides the states of a stage among the new partitions of their keys."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from bettong.application.timers import Clock
from bettong.errors import SnapshotError
from bettong.identifiers import PartitionId
from bettong.routing import partitions_of_keys
from bettong.snapshots import snapshot as codec
from bettong.v1.snapshot_pb2 import Snapshot
from bettong.worker.partition import Assignment, PartitionWorker
from bettong.worker.stage_program import StageProgram
from bettong.worker.state.table import SavedStates, StateTable, scope_of

# The scope of states that pass between two tables of one process.
_TRANSFER = b"\0repartition"


def with_states(
    program: StageProgram,
    old: Sequence[PartitionWorker],
    partitions: int,
    head: Callable[[PartitionId], Snapshot],
) -> Iterator[tuple[PartitionId, bytes, int]]:
    """The new snapshots of a stage, encoded, each restored by a worker as a check, and how many states it has.

    `old`: a worker with its states for each old partition; they are all in memory, and once more while they are
    divided. `head`: see `new_heads`; called when it is that snapshot's turn. Raises SnapshotError where
    states are not where their keys belong, or not all restored.
    """
    parts = {node.name: _split(node.name, old, partitions) for node in program.stateful()}
    before = {name: sum(worker.tables[name].keys for worker in old) for name in parts}
    after = dict.fromkeys(parts, 0)
    for number in range(partitions):
        id_ = PartitionId(program.stage.name, number)
        snapshot = head(id_)
        _fill(program, program.tables(), snapshot, {name: each[number] for name, each in parts.items()})
        data = codec.encode(snapshot)
        assignment = Assignment(snapshot.application, number, partitions, old[0].assignment.frame_bytes_max)
        worker = PartitionWorker(program, assignment)
        worker.restore(data)
        for name in parts:
            after[name] += worker.tables[name].keys
        yield id_, data, worker.keys
    if after != before:
        raise SnapshotError(
            f"stage {program.stage.name!r}: {before} states became {after}: nothing is changed; report it"
        )


def _split(name: str, old: Sequence[PartitionWorker], partitions: int) -> list[list[SavedStates]]:
    """By new partition, the states that each old one has for it. No key can be at home in two old partitions."""
    for worker in old:
        table = worker.tables[name]
        keys = table.key_values()
        homes = set(partitions_of_keys(keys, worker.assignment.partitions).tolist()) if keys else set()
        if not homes <= {worker.assignment.partition}:
            raise SnapshotError(
                f"{worker.id}: {name!r} has states of keys that belong to partitions {sorted(homes)} of"
                f" {worker.assignment.partitions}: they cannot be repartitioned. Was the application keyed differently"
                " when they were saved?"
            )
    split = [worker.tables[name].split(partitions, _TRANSFER) for worker in old]
    return [[each[number] for each in split] for number in range(partitions)]


def _fill(
    program: StageProgram,
    tables: Mapping[str, StateTable],
    head: Snapshot,
    parts: Mapping[str, Sequence[SavedStates]],
) -> None:
    """Puts the states of a new partition into its snapshot."""
    by_event = program.expiring(Clock.EVENT)
    id_ = PartitionId(head.stage, head.partition)
    for name, table in tables.items():
        for part in parts[name]:
            table.load(part, log_ns=head.now_ns, begins=False, scope=_TRANSFER)
        saved = table.dump(scope_of(head.application, id_, head.offset, name))
        head.states[name] = saved.states
        head.state_schemas[name].CopyFrom(program.state_schemas[name])
        if saved.last_ns:
            (head.last_event_ns if name in by_event else head.last_ns)[name] = saved.last_ns
