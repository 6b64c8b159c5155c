"""The kernels of an application's compiled computations."""

from collections.abc import Callable, Mapping
from inspect import isgeneratorfunction
from typing import Any, get_type_hints

from bettong.application.execution_mode import ExecutionMode, refusal
from bettong.application.plan import Computation
from bettong.application.streams import Filtered, FlatMapped, Stateful
from bettong.schema.schema import Schema, schema_of
from bettong.worker.kernel import Gives, Kernel, KernelCache, KernelForm, compile_kernel
from bettong.worker.state.records import check_fixed, first_state


def compile_node(node: Computation, *, cache: KernelCache | None) -> dict[Schema, Kernel]:
    """The kernels of a computation, one a schema that it takes. Slow (seconds) unless `cache` has them.

    Raises ApplicationError when a schema, the state or a function cannot be compiled.
    """
    state = None
    if isinstance(node, Stateful):
        first_state(node)
        state = schema_of(node.state)
    return _kernels(node, functions_of(node), state, cache=cache)


def compile_timers(node: Stateful, fired: Schema, *, cache: KernelCache | None) -> dict[str, Kernel]:
    """The kernels of the functions of its timers, by field. `fired`: what they take. Raises as `compile_node`."""
    state = schema_of(node.state)
    return {
        timer.field: _kernels(node, {fired: timer.function}, state, cache=cache)[fired]
        for timer in node.timers
    }


def _kernels(
    node: Computation,
    functions: Mapping[Schema, Callable[..., Any]],
    state: Schema | None,
    *,
    cache: KernelCache | None,
) -> dict[Schema, Kernel]:
    delete_when = node.delete_when if isinstance(node, Stateful) else None
    if isinstance(node, Stateful):
        for function in filter(isgeneratorfunction, functions.values()):
            reason = "a generator of Numba's changes a copy of its state; return a list instead"
            raise refusal(function, ExecutionMode.COMPILED, reason)
    for schema in (*functions, node.schema):
        check_fixed("compiled", node.name, schema)
    return {
        schema: compile_kernel(
            function, _form(node, schema, state, function), delete_when=delete_when, cache=cache
        )
        for schema, function in functions.items()
    }


def functions_of(node: Computation) -> Mapping[Schema, Callable[..., Any]]:
    """The functions of a computation, by what they take."""
    if isinstance(node, Stateful):
        return node.handlers
    assert node.parent.schema is not None  # noqa: S101 - checked when the application was built
    return {node.parent.schema: node.function}


def _form(node: Computation, takes: Schema, state: Schema | None, function: Callable[..., Any]) -> KernelForm:
    if isinstance(node, Filtered):
        return KernelForm(takes, state, Gives.WHETHER, None)
    several = node.many if isinstance(node, Stateful) else isinstance(node, FlatMapped)
    gives = Gives.MANY if several else Gives.ONE
    if get_type_hints(function).get("return") is type(None):
        gives = Gives.NOTHING
    deletes = isinstance(node, Stateful) and node.delete_when is not None
    return KernelForm(takes, state, gives, node.schema, deletes)
