"""A stage ready to run: compiled once a process, its operators and states made once a partition."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from bettong.application.execution_mode import ExecutionMode
from bettong.application.joins.joined import Joined
from bettong.application.key import fields_of
from bettong.application.nodes.stateful import Stateful
from bettong.application.nodes.stateless import Stateless
from bettong.application.on_error import OnError
from bettong.application.plan import PlannedOperator, Stage, StageInput
from bettong.application.timers import Clock, StateTimer
from bettong.application.windows.windowed import Windowed
from bettong.errors import ApplicationError
from bettong.frames.composite_keys import packed_dtype
from bettong.identifiers import PartitionId
from bettong.schema.fields import Field, Kind
from bettong.schema.schema import Schema
from bettong.v1.snapshot_pb2 import StateSchema
from bettong.worker.calling.columns import ColumnsCalling, StatefulColumns, try_stateful, try_stateless
from bettong.worker.calling.compiled import CompiledCalling, PairCalling
from bettong.worker.calling.messages import StatefulMessages, messages_calling
from bettong.worker.calling.results import Calling
from bettong.worker.compiling import compile_deletes, compile_join, compile_node, compile_timers
from bettong.worker.fired import fired_of_parts, fired_schema, of_any_key
from bettong.worker.joins.column_joins import ColumnTable, column_join, column_table
from bettong.worker.joins.sides import SideReads, StreamReads
from bettong.worker.kernel import Kernel, KernelCache
from bettong.worker.operators.kinds import make_operator
from bettong.worker.operators.operator import Operator
from bettong.worker.output.routing import Router
from bettong.worker.progress import FoldProgress
from bettong.worker.references.versions import References
from bettong.worker.state.objects import ObjectTable, check_state
from bettong.worker.state.pane_table import PaneTable
from bettong.worker.state.records import RecordTable
from bettong.worker.state.state_schemas import state_schema_of
from bettong.worker.state.table import StateTable
from bettong.worker.windows.compiled_kinds import pane_table_of, try_windows

# In the order in which rows pass them, each with the streams that it reads.
Operators: TypeAlias = tuple[tuple[StreamReads | SideReads, Operator], ...]


@dataclass(frozen=True, slots=True)
class StageProgram:
    """A stage with its compiled kernels, and the schemas of its states, by computation."""

    stage: Stage
    # By compiled computation. None for windows, whose kernels are Bettong's own.
    kernels: dict[str, dict[Schema, Kernel]]
    state_schemas: dict[str, StateSchema]
    # Signs states that are pickles: see `bettong.Pickle`.
    state_key: bytes | None = field(default=None, repr=False, kw_only=True)

    def tables(self) -> dict[str, StateTable]:
        """Empty states for one partition, by computation."""
        return {node.name: self._table(node) for node in self.stateful()}

    def expiring(self, clock: Clock) -> list[str]:
        """The computations whose states have a time to live by that clock."""
        nodes = ((node.name, node.lifetime) for node in self.stateful())
        return [name for name, lifetime in nodes if lifetime is not None and lifetime.clock is clock]

    def clocked(self) -> list[str]:
        """The computations that need the log clock, besides those whose states expire by it."""
        return [node.name for node in self.stateful() if node.follows_log_clock]

    def is_ever_due(self) -> bool:
        """Whether something here may be due although no record comes: see `PartitionWorker.due_ns`."""
        return self.stage.needs_time or bool(self.timed())

    def timed(self) -> list[str]:
        """The computations whose states have a time to live, or timers."""
        return [node.name for node in self.stateful() if node.lifetime is not None or node.timers]

    def deleting(self) -> list[str]:
        """The computations that delete states."""
        return [node.name for node in self.stateful() if node.delete_when is not None]

    def stateful(self) -> Iterator[Stateful]:
        """The computations that keep states."""
        nodes = (operator.node for operator in self.stage.operators)
        return (node for node in nodes if isinstance(node, Stateful))

    def _table(self, node: Stateful) -> StateTable:
        if node.name in self.kernels or node.mode is ExecutionMode.VECTORIZED:
            if isinstance(node, Windowed):
                return pane_table(self.stage, node)
            if isinstance(node, Joined):
                return join_table(self.stage, node)
            return record_table(self.stage, node)
        return ObjectTable(node, self.state_key, _key_field(self.stage, node) if node.timers else None)

    def on_error(self) -> dict[str, OnError]:
        """See Stage."""
        return self.stage.on_error()

    def operators(
        self, tables: Mapping[str, StateTable], references: References, progress: FoldProgress
    ) -> Operators:
        """The stage's operators over these states, each with the streams that it reads. They report to `progress`."""
        parts = _Parts(self, tables, references, progress)
        for planned in self.stage.operators:
            parts.made[planned.node.name] = make_operator(planned.node, parts)
        return tuple((_reads(planned), parts.made[planned.node.name]) for planned in self.stage.operators)

    def router(self, application: str, partition: int, partitions: int) -> Router:
        """What routes the rows that leave the stage in one partition."""
        return Router(application, PartitionId(self.stage.name, partition), partitions)


@dataclass(slots=True)
class _Parts:
    """See OperatorParts."""

    program: StageProgram
    tables: Mapping[str, StateTable]
    references: References
    progress: FoldProgress
    made: dict[str, Operator] = field(default_factory=dict)

    @property
    def needs_each_watermark(self) -> bool:
        """See OperatorParts."""
        return self.program.stage.needs_each_watermark

    def calling(self, node: Stateless) -> Calling[None]:
        """See OperatorParts."""
        if node.name in self.program.kernels:
            return CompiledCalling(self.program.kernels[node.name], node.on_error)
        if node.mode is ExecutionMode.VECTORIZED:
            return ColumnsCalling(node)
        return messages_calling(node, self.progress)

    def stateful_calling(self, node: Stateful) -> Calling[Any]:
        """See OperatorParts."""
        if node.name in self.program.kernels:
            return CompiledCalling(self.program.kernels[node.name], node.on_error)
        if node.mode is ExecutionMode.VECTORIZED:
            return StatefulColumns(node, node.handlers)
        return StatefulMessages(node, node.handlers, self.progress)

    def pair_calling(self, node: Joined) -> PairCalling:
        """See OperatorParts."""
        (kernel,) = self.program.kernels[node.name].values()
        return PairCalling(kernel, node.on_error)

    def deletes_calling(self, node: Joined) -> Calling[None] | None:
        """See OperatorParts."""
        kernels = self.program.kernels.get(_deletes_name(node))
        return None if kernels is None else CompiledCalling(kernels, node.on_error)

    def timer_calling(self, node: Stateful, timer: StateTimer) -> Calling[Any]:
        """See OperatorParts."""
        if (name := _timer_name(node, timer.field)) in self.program.kernels:
            return CompiledCalling(self.program.kernels[name], node.on_error)
        if node.mode is ExecutionMode.VECTORIZED:
            return StatefulColumns(node, {_fired_schema(self.program.stage, node): timer.function})
        return StatefulMessages(node, of_any_key(timer.function), self.progress)


def program(
    stage: Stage, *, compiled: bool, cache: KernelCache | None = None, state_key: bytes | None = None
) -> StageProgram:
    """Prepares a stage. Compiles what is marked unless `compiled` is off; that takes seconds, unless `cache` has the
    kernels of an earlier run. `state_key` signs states that are pickles.

    Raises ApplicationError when a marked computation cannot be compiled, a vectorized one cannot run over a frame,
    or a state cannot be kept in a snapshot.
    """
    kernels: dict[str, dict[Schema, Kernel]] = {}
    state_schemas: dict[str, StateSchema] = {}
    for node in (operator.node for operator in stage.operators):
        mode = ExecutionMode.PYTHON if node.mode is ExecutionMode.COMPILED and not compiled else node.mode
        if isinstance(node, Stateful):
            _try_state(stage, node, mode, state_key)
            state_schemas[node.name] = state_schema_of(stage, node, records=mode is not ExecutionMode.PYTHON)
        elif isinstance(node, Stateless) and mode is ExecutionMode.VECTORIZED:
            try_stateless(node)
        if isinstance(node, Windowed):
            kernels |= {node.name: {}} if mode is ExecutionMode.COMPILED else {}
        elif isinstance(node, Joined):
            if mode is ExecutionMode.COMPILED:
                kernels |= _of_join(node, cache)
        elif isinstance(node, Stateless | Stateful) and mode is ExecutionMode.COMPILED:
            kernels[node.name] = compile_node(node, cache=cache)
            if isinstance(node, Stateful) and node.timers:
                fired = _fired_schema(stage, node)
                for field_, kernel in compile_timers(node, fired, cache=cache).items():
                    kernels[_timer_name(node, field_)] = {fired: kernel}
    return StageProgram(stage, kernels, state_schemas, state_key=state_key)


def record_table(stage: Stage, node: Stateful) -> RecordTable:
    """Empty states of a compiled or vectorized computation. Raises as `key_type`."""
    key = key_type(stage, node)
    return RecordTable(node, key.dtype, key.kind, key.parts)


def pane_table(stage: Stage, node: Windowed) -> PaneTable:
    """Empty states of compiled windows. Raises as `key_type`, and where the key does not fill a field of the result."""
    return pane_table_of(node, *key_type(stage, node))


def join_table(stage: Stage, node: Joined) -> ColumnTable:
    """An empty table for a compiled join. Raises as `key_type`."""
    return column_table(node, key_type(stage, node))


def _of_join(node: Joined, cache: KernelCache | None) -> dict[str, dict[Schema, Kernel]]:
    """The kernels of a compiled join, by their names."""
    left, right = node.sides
    found = {node.name: {left: compile_join(node, cache=cache)}}
    deletes = compile_deletes(node, cache=cache)
    return found if deletes is None else found | {_deletes_name(node): {right: deletes}}


def _key_field(stage: Stage, node: Stateful) -> Field | None:
    """The field of fixed width that is a computation's key; None where it is computed or varies in width."""
    try:
        key = key_type(stage, node)
    except ApplicationError:
        return None
    return fired_schema(key.kind, key.dtype).fields[0] if key.parts is None else None


# Unique: no computation's name has a dot.
def _timer_name(node: Stateful, field_: str) -> str:
    return f"{node.name}.{field_}"


def _deletes_name(node: Joined) -> str:
    return f"{node.name}.deletes"


class KeyType(NamedTuple):
    """The type of keys in a column. `parts`: the fields of a key that is a tuple; see `composite_keys`."""

    kind: Kind
    dtype: np.dtype[Any]
    parts: tuple[Field, ...] | None = None


def key_type(stage: Stage, node: Stateful) -> KeyType:
    """Kind and numpy type of the key that reaches a compiled or vectorized computation; the same from every entry.

    Raises ApplicationError when a key is a function, varies in width, or differs between inputs.
    """
    found: dict[tuple[tuple[Kind, np.dtype[Any]], ...], tuple[str, KeyType]] = {}
    for entry in inputs_of(stage, node.name):
        if entry.key is None or callable(entry.key):
            raise ApplicationError(
                f"{node.mode.value} {node.name!r}: the key of {entry.stream!r} is a function; key by fields"
            )
        names = fields_of(entry.key)
        fields = tuple(entry.schema.fields[entry.schema.position(name)] for name in names)
        types = tuple(_key_part(node, entry.stream, field) for field in fields)
        is_one = isinstance(entry.key, str)
        of = KeyType(*types[0]) if is_one else KeyType(Kind.BYTES, packed_dtype(fields), fields)
        found.setdefault(types, (entry.stream, of))
    if len(found) > 1:
        keys = ", ".join(
            f"{stream} ({', '.join(f'{kind.value}, {dtype}' for kind, dtype in types)})"
            for types, (stream, _) in found.items()
        )
        raise ApplicationError(f"{node.mode.value} {node.name!r}: its streams' keys differ in type: {keys}")
    return next(of for _, of in found.values())


def _key_part(node: Stateful, stream: str, field: Field) -> tuple[Kind, np.dtype[Any]]:
    if field.dtype is None:
        raise ApplicationError(
            f"{node.mode.value} {node.name!r}: key {field.name!r} of {stream!r} has no fixed width;"
            " use Annotated[str, Width(n)]"
        )
    # Integers of all widths are one type, but for u64, whose upper half has the bits of negative integers.
    signed = field.dtype.kind in "iu" and field.dtype != np.uint64
    return field.kind, np.dtype(np.int64) if signed else field.dtype


def _fired_schema(stage: Stage, node: Stateful) -> Schema:
    """The input schema of timers' functions. Raises as `key_type`."""
    key = key_type(stage, node)
    return fired_schema(key.kind, key.dtype) if key.parts is None else fired_of_parts(key.parts)


def _try_state(stage: Stage, node: Stateful, mode: ExecutionMode, state_key: bytes | None) -> None:
    if mode is ExecutionMode.PYTHON:
        check_state(node, state_key)
        return
    if isinstance(node, Windowed):
        try_windows(node, pane_table(stage, node))
        return
    if isinstance(node, Joined):
        column_join(node, join_table(stage, node)).try_without_rows()
        return
    table = record_table(stage, node)
    if mode is ExecutionMode.VECTORIZED:
        try_stateful(node, table)


def _reads(planned: PlannedOperator) -> StreamReads | SideReads:
    if not planned.right:
        return StreamReads(planned.reads)
    return SideReads(StreamReads(planned.reads[: -len(planned.right)]), StreamReads(planned.right))


def inputs_of(stage: Stage, computation: str) -> list[StageInput]:
    """The inputs whose frames can reach a computation."""
    reads = {operator.node.name: operator.reads for operator in stage.operators}
    reached, todo = set(), [computation]
    while todo:
        name = todo.pop()
        for read in reads.get(name, ()):
            if read not in reached:
                reached.add(read)
                todo.append(read)
    return [entry for entry in stage.inputs if entry.stream in reached]
