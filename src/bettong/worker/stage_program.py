"""A stage ready to run: its operators made once a process, its states made once a partition."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from bettong.application.execution_mode import ExecutionMode
from bettong.application.on_error import OnError
from bettong.application.plan import Computation, Stage, StageInput
from bettong.application.streams import Filtered, Stateful, Stateless
from bettong.application.timers import Clock, StateTimer
from bettong.errors import ApplicationError
from bettong.schema.fields import Field, Kind
from bettong.schema.schema import Schema
from bettong.v1.snapshot_pb2 import Shape
from bettong.worker.calling.columns import ColumnsCalling, StatefulColumns, try_stateful, try_stateless
from bettong.worker.calling.compiled import CompiledCalling
from bettong.worker.calling.messages import StatefulMessages, messages_calling
from bettong.worker.calling.results import Calling
from bettong.worker.compiling import compile_node, compile_timers
from bettong.worker.fired import fired_schema, of_any_key
from bettong.worker.kernel import Kernel, KernelCache
from bettong.worker.operators.filter import FilterOperator
from bettong.worker.operators.map import MapOperator
from bettong.worker.operators.operator import Operator
from bettong.worker.operators.stateful import StatefulOperator
from bettong.worker.output.routing import Router
from bettong.worker.progress import FoldProgress
from bettong.worker.state.objects import ObjectTable, check_state
from bettong.worker.state.records import RecordTable
from bettong.worker.state.shapes import shape_of
from bettong.worker.state.table import StateTable

# Each with the streams that it reads, in the order in which rows pass them.
Operators: TypeAlias = tuple[tuple[tuple[str, ...], Operator], ...]


@dataclass(frozen=True, slots=True)
class StageProgram:
    """A stage with its compiled kernels, and the shapes of its states by computation."""

    stage: Stage
    kernels: dict[str, dict[Schema, Kernel]]
    shapes: dict[str, Shape]
    # Signs states that are pickles: see `bettong.Pickle`.
    state_key: bytes | None = field(default=None, repr=False, kw_only=True)

    def tables(self) -> dict[str, StateTable]:
        """Empty states for one partition, by computation."""
        return {node.name: self._table(node) for node in self._stateful()}

    def expiring(self, clock: Clock) -> list[str]:
        """The computations whose states have a time to live by that clock."""
        nodes = ((node.name, node.lifetime) for node in self._stateful())
        return [name for name, lifetime in nodes if lifetime is not None and lifetime.clock is clock]

    def is_ever_due(self) -> bool:
        """Whether something here may be due although no record comes: see `PartitionWorker.due_ns`."""
        return self.stage.needs_time or bool(self.timed())

    def timed(self) -> list[str]:
        """The computations whose states end, or have timers."""
        return [node.name for node in self._stateful() if node.lifetime is not None or node.timers]

    def deleting(self) -> list[str]:
        """The computations that delete states."""
        return [node.name for node in self._stateful() if node.delete_when is not None]

    def _stateful(self) -> Iterator[Stateful]:
        nodes = (operator.node for operator in self.stage.operators)
        return (node for node in nodes if isinstance(node, Stateful))

    def _table(self, node: Stateful) -> StateTable:
        if node.name in self.kernels or node.way is ExecutionMode.VECTORIZED:
            return record_table(self.stage, node)
        return ObjectTable(node, self.state_key, _key_field(self.stage, node) if node.timers else None)

    def on_error(self) -> dict[str, OnError]:
        """See Stage."""
        return self.stage.on_error()

    def operators(self, tables: Mapping[str, StateTable], progress: FoldProgress) -> Operators:
        """The stage's operators over these states, each with the streams that it reads. They report to `progress`."""
        return tuple(
            (planned.reads, self._operator(planned.node, tables, progress))
            for planned in self.stage.operators
        )

    def router(self, application: str, partition: int, partitions: int) -> Router:
        """What routes the rows that leave the stage in one partition."""
        return Router(application, self.stage.name, partition, partitions)

    def _operator(
        self, node: Computation, tables: Mapping[str, StateTable], progress: FoldProgress
    ) -> Operator:
        if isinstance(node, Stateful):
            timers = {timer.field: self._timer_calling(node, timer, progress) for timer in node.timers}
            calling = self._stateful_calling(node, progress)
            return StatefulOperator(node, tables[node.name], calling, timers, progress)
        if isinstance(node, Filtered):
            return FilterOperator(node.name, self._stateless_calling(node, progress))
        return MapOperator(node.name, self._stateless_calling(node, progress))

    def _stateful_calling(self, node: Stateful, progress: FoldProgress) -> Calling[Any]:
        if node.name in self.kernels:
            return CompiledCalling(self.kernels[node.name], node.on_error)
        if node.way is ExecutionMode.VECTORIZED:
            return StatefulColumns(node, node.handlers)
        return StatefulMessages(node, node.handlers, progress)

    def _timer_calling(self, node: Stateful, timer: StateTimer, progress: FoldProgress) -> Calling[Any]:
        if (name := _timer_name(node, timer.field)) in self.kernels:
            return CompiledCalling(self.kernels[name], node.on_error)
        if node.way is ExecutionMode.VECTORIZED:
            return StatefulColumns(node, {fired_schema(*key_type(self.stage, node)): timer.function})
        return StatefulMessages(node, of_any_key(timer.function), progress)

    def _stateless_calling(self, node: Stateless, progress: FoldProgress) -> Calling[None]:
        if node.name in self.kernels:
            return CompiledCalling(self.kernels[node.name], node.on_error)
        return (
            ColumnsCalling(node) if node.way is ExecutionMode.VECTORIZED else messages_calling(node, progress)
        )


def program(
    stage: Stage, *, compiled: bool, cache: KernelCache | None = None, state_key: bytes | None = None
) -> StageProgram:
    """Makes a stage ready. Compiles what is marked unless `compiled` is off; that takes seconds, unless
    `cache` keeps kernels of an earlier run. `state_key` signs states that are pickles.

    Raises ApplicationError when a marked computation cannot be compiled, a vectorized one cannot run over a frame,
    or a state not be kept in a snapshot.
    """
    kernels: dict[str, dict[Schema, Kernel]] = {}
    shapes: dict[str, Shape] = {}
    for node in (operator.node for operator in stage.operators):
        mode = ExecutionMode.PYTHON if node.way is ExecutionMode.COMPILED and not compiled else node.way
        if isinstance(node, Stateful):
            _try_state(stage, node, mode, state_key)
            shapes[node.name] = shape_of(stage, node, records=mode is not ExecutionMode.PYTHON)
        elif mode is ExecutionMode.VECTORIZED:
            try_stateless(node)
        if mode is ExecutionMode.COMPILED:
            kernels[node.name] = compile_node(node, cache=cache)
            if isinstance(node, Stateful) and node.timers:
                fired = fired_schema(*key_type(stage, node))
                for field_, kernel in compile_timers(node, fired, cache=cache).items():
                    kernels[_timer_name(node, field_)] = {fired: kernel}
    return StageProgram(stage, kernels, shapes, state_key=state_key)


def record_table(stage: Stage, node: Stateful) -> RecordTable:
    """Empty states of a compiled or vectorized computation. Raises as `key_type`."""
    kind, dtype = key_type(stage, node)
    return RecordTable(node, dtype, kind)


def _key_field(stage: Stage, node: Stateful) -> Field | None:
    """The field of a fixed width that a computation's key is; None where it is computed or has any width."""
    try:
        return fired_schema(*key_type(stage, node)).fields[0]
    except ApplicationError:
        return None


def _timer_name(node: Stateful, field_: str) -> str:
    # No dot stands in a computation's name.
    return f"{node.name}.{field_}"


def key_type(stage: Stage, node: Stateful) -> tuple[Kind, np.dtype[Any]]:
    """Kind and numpy type of the key that reaches a compiled or vectorized computation; the same from every entry.

    Raises ApplicationError when a key is a function, varies in width, or differs between inputs.
    """
    found: dict[tuple[Kind, np.dtype[Any]], str] = {}
    for entry in _inputs_of(stage, node.name):
        if not isinstance(entry.key, str):
            raise ApplicationError(
                f"{node.way.value} {node.name!r}: the key of {entry.stream!r} is a function; key by a field"
            )
        field = entry.schema.fields[entry.schema.position(entry.key)]
        if field.dtype is None:
            raise ApplicationError(
                f"{node.way.value} {node.name!r}: key {entry.key!r} of {entry.stream!r} has no fixed width;"
                " use Annotated[str, Width(n)]"
            )
        # Integers of all widths are one type, but for the unsigned ones that share their bits with negative ones.
        signed = field.dtype.kind in "iu" and field.dtype != np.uint64
        found[field.kind, np.dtype(np.int64) if signed else field.dtype] = entry.stream
    if len(found) > 1:
        keys = ", ".join(f"{stream} ({kind.value}, {dtype})" for (kind, dtype), stream in found.items())
        raise ApplicationError(f"{node.way.value} {node.name!r}: its streams' keys differ in type: {keys}")
    return next(iter(found))


def _try_state(stage: Stage, node: Stateful, mode: ExecutionMode, state_key: bytes | None) -> None:
    if mode is ExecutionMode.PYTHON:
        check_state(node, state_key)
        return
    table = record_table(stage, node)
    if mode is ExecutionMode.VECTORIZED:
        try_stateful(node, table)


def _inputs_of(stage: Stage, computation: str) -> list[StageInput]:
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
