"""A stage ready to run: its operators made once a process, its states made once a partition."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from bettong.application.fields import Kind
from bettong.application.on_error import OnError
from bettong.application.plan import Computation, Entrance, Stage
from bettong.application.schema import Schema
from bettong.application.streams import Filtered, FlatMapped, Mapped, Stateful, Stateless
from bettong.application.ways import Way
from bettong.errors import ApplicationError
from bettong.v1.snapshot_pb2 import Shape
from bettong.worker.compiled_fold import CompiledFold
from bettong.worker.compiled_run import CompiledOperator
from bettong.worker.compiling import compile_node
from bettong.worker.kernel import Kernel
from bettong.worker.letters import Letters
from bettong.worker.operators import Exact, FilterOperator, FlatMapOperator, MapOperator, Operator
from bettong.worker.python_fold import PythonFold, check_state
from bettong.worker.rows import Rows
from bettong.worker.shapes import Migration, shape_of
from bettong.worker.vectorized import VectorizedFold, VectorizedOperator, try_fold, try_operator

_PLAIN: Mapping[type[Stateless], Callable[[Any], Operator]] = {
    Mapped: MapOperator,
    Filtered: FilterOperator,
    FlatMapped: FlatMapOperator,
}


class Fold(Operator, Protocol):
    """A stateful computation of one partition: an operator whose state can be saved."""

    def dump(self, place: bytes = b"") -> bytes:
        """The states of all keys; equal states have equal bytes. `place`, here and below: what a signature covers."""

    def increment(self, *, begins: bool, place: bytes = b"") -> bytes:
        """The states that changed since the last increment, and some of the others (see `snapshots.chain`).

        `begins`: a new round of writing every key again begins with it.
        """

    @property
    def settled(self) -> bool:
        """Whether the present round has come to every key."""

    def load(
        self, data: bytes, *, begins: bool, migration: Migration | None = None, place: bytes = b""
    ) -> None:
        """Takes over what `increment` (or `dump`) gave, in the order in which it was given.

        `migration`, when given, makes states of this version from the older ones in `data`. Raises
        SnapshotError when it cannot be read; then the fold is spoilt.
        """

    @property
    def keys(self) -> int:
        """How many keys have a state."""

    @property
    def exact(self) -> bool:
        """Whether it sees and gives only what fits a schema: rows that do not are dead letters before it runs."""

    def state_of(self, key: str | int | bytes) -> Any:
        """The state of one key as JSON can hold it (see `plain`), a copy; None when the key has none."""

    def items(self) -> Iterator[tuple[str | int | bytes, Any]]:
        """Every key, with its state as `state_of` gives it. Compiled, a text key is the bytes of its UTF-8."""


@dataclass(frozen=True, slots=True)
class StageProgram:
    """A stage with its compiled kernels, and the shapes of its states by computation."""

    stage: Stage
    kernels: dict[str, dict[Schema, Kernel]]
    shapes: dict[str, Shape]
    # Signs states that are pickles: see `bettong.Pickle`.
    state_key: bytes | None = field(default=None, repr=False, kw_only=True)

    def folds(self) -> dict[str, Fold]:
        """Empty states for one partition, by computation."""
        return {
            operator.node.name: self._fold(operator.node)
            for operator in self.stage.operators
            if isinstance(operator.node, Stateful)
        }

    def _fold(self, node: Stateful) -> Fold:
        if node.name in self.kernels:
            return CompiledFold(node, key_dtype(self.stage, node), self.kernels[node.name])
        if node.way is Way.VECTORIZED:
            return VectorizedFold(node, key_dtype(self.stage, node))
        return PythonFold(node, self.state_key)

    def on_error(self) -> dict[str, OnError]:
        """See Stage."""
        return self.stage.on_error()

    def operators(self, folds: dict[str, Fold]) -> tuple[tuple[tuple[str, ...], Operator], ...]:
        """The stage's operators over these states, each with the streams that it reads."""
        return tuple(
            (planned.reads, _operator(planned.node, self, folds)) for planned in self.stage.operators
        )


def program(
    stage: Stage, *, compiled: bool, cache: Path | None = None, state_key: bytes | None = None
) -> StageProgram:
    """Makes a stage ready. Compiles what is marked unless `compiled` is off; that takes seconds, unless the
    folder `cache` keeps kernels of an earlier run. `state_key` signs states that are pickles.

    Raises ApplicationError when a marked computation cannot be compiled, a vectorized one cannot run over a frame,
    or a state not be kept in a snapshot.
    """
    kernels: dict[str, dict[Schema, Kernel]] = {}
    shapes: dict[str, Shape] = {}
    for node in (operator.node for operator in stage.operators):
        way = Way.PYTHON if node.way is Way.COMPILED and not compiled else node.way
        if isinstance(node, Stateful):
            _try_state(stage, node, way, state_key)
            shapes[node.name] = shape_of(stage, node, records=way is not Way.PYTHON)
        elif way is Way.VECTORIZED:
            try_operator(node)
        if way is Way.COMPILED:
            kernels[node.name] = compile_node(node, cache=cache)
    return StageProgram(stage, kernels, shapes, state_key=state_key)


def key_dtype(stage: Stage, node: Stateful) -> np.dtype[Any]:
    """The numpy type of the key that reaches a compiled or vectorized computation; the same from every entrance.

    Raises ApplicationError when a key is a function, varies in width, or differs between entrances.
    """
    found: dict[tuple[Kind, np.dtype[Any]], str] = {}
    for entrance in _entrances_of(stage, node.name):
        if not isinstance(entrance.key, str):
            raise ApplicationError(
                f"{node.way.value} {node.name!r}: the key of {entrance.stream!r} is a function; key by a field"
            )
        field = entrance.schema.fields[entrance.schema.position(entrance.key)]
        if field.dtype is None:
            raise ApplicationError(
                f"{node.way.value} {node.name!r}: key {entrance.key!r} of {entrance.stream!r} has no fixed width;"
                " use Annotated[str, Width(n)]"
            )
        # Integers of all widths are one type, but for the unsigned ones that share their bits with negative ones.
        signed = field.dtype.kind in "iu" and field.dtype != np.uint64
        found[field.kind, np.dtype(np.int64) if signed else field.dtype] = entrance.stream
    if len(found) > 1:
        keys = ", ".join(f"{stream} ({kind.value}, {dtype})" for (kind, dtype), stream in found.items())
        raise ApplicationError(f"{node.way.value} {node.name!r}: its streams' keys differ in type: {keys}")
    return next(iter(found))[1]


def run(
    operators: tuple[tuple[tuple[str, ...], Operator], ...], stream: str, rows: Rows, letters: Letters
) -> dict[str, list[Rows]]:
    """Passes the rows of one frame through a stage: every stream's rows, the frame's own included."""
    flows: dict[str, list[Rows]] = {stream: [rows]}
    for reads, operator in operators:
        arriving = [each for read in reads for each in flows.get(read, ())]
        if arriving:
            letters.progress.enter(operator.name)
            flows[operator.name] = [operator.run(each, letters) for each in arriving if each.length]
    return flows


def _try_state(stage: Stage, node: Stateful, way: Way, state_key: bytes | None) -> None:
    if way is Way.PYTHON:
        check_state(node, state_key)
        return
    key = key_dtype(stage, node)
    if way is Way.VECTORIZED:
        try_fold(node, key)


def _operator(node: Computation, program: StageProgram, folds: dict[str, Fold]) -> Operator:
    if isinstance(node, Stateful):
        return folds[node.name]
    if node.name in program.kernels:
        return CompiledOperator(node, program.kernels[node.name])
    if node.way is Way.VECTORIZED:
        return VectorizedOperator(node)
    plain = _PLAIN[type(node)](node)
    return plain if node.way is Way.PYTHON else Exact(plain)


def _entrances_of(stage: Stage, computation: str) -> list[Entrance]:
    """The entrances whose frames can reach a computation."""
    reads = {operator.node.name: operator.reads for operator in stage.operators}
    reached, todo = set(), [computation]
    while todo:
        name = todo.pop()
        for read in reads.get(name, ()):
            if read not in reached:
                reached.add(read)
                todo.append(read)
    return [entrance for entrance in stage.entrances if entrance.stream in reached]
