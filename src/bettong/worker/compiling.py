"""The kernels of an application's compiled computations."""

import dis
from collections.abc import Callable, Mapping
from inspect import isgeneratorfunction
from itertools import pairwise
from typing import Any, get_type_hints

from bettong.application.execution_mode import ExecutionMode, refusal
from bettong.application.joins.joined import Joined
from bettong.application.joins.kinds import Latest
from bettong.application.nodes.computation import Computation
from bettong.application.nodes.stateful import Stateful
from bettong.application.nodes.stateless import Stateless
from bettong.application.returns import Returns
from bettong.schema.schema import Schema
from bettong.worker.kernel import Kernel, KernelCache, KernelForm, compile_kernel
from bettong.worker.state.record_layout import check_fixed, first_state, layout_of
from bettong.worker.state_members import ObjectMember


def compile_node(node: Stateless | Stateful, *, cache: KernelCache | None) -> dict[Schema, Kernel]:
    """The kernels of a computation, one a schema that it takes. Slow (seconds) unless `cache` has them.

    Raises ApplicationError when a schema, the state or a function cannot be compiled.
    """
    state = None
    if isinstance(node, Stateful):
        first_state(node)
        state = layout_of(node)
    return _kernels(node, functions_of(node), state, cache=cache)


def compile_join(node: Joined, *, cache: KernelCache | None) -> Kernel:
    """The kernel of the function of a join, over pairs of messages. As `compile_node`."""
    left, right = node.sides
    for schema in (left, right, node.schema):
        check_fixed("compiled", node.name, schema)
    form = KernelForm(left, None, Returns.MANY, node.schema, right=right, lacks=node.lacks)
    return compile_kernel(node.combine, form, cache=cache)


def compile_deletes(node: Joined, *, cache: KernelCache | None) -> Kernel | None:
    """The kernel of a predicate that says whether a table's message deletes; None without one. As `compile_node`."""
    if not isinstance(node.kind, Latest) or node.kind.deletes is None or node.kind.deletes_field is not None:
        return None
    return compile_kernel(
        node.kind.deletes, KernelForm(node.sides[1], None, Returns.WHETHER, None), cache=cache
    )


def compile_timers(node: Stateful, fired: Schema, *, cache: KernelCache | None) -> dict[str, Kernel]:
    """The kernels of a computation's timers, by field. `fired`: their input schema. Raises as `compile_node`."""
    state = layout_of(node)
    return {
        timer.field: _kernels(node, {fired: timer.function}, state, cache=cache)[fired]
        for timer in node.timers
    }


def _kernels(
    node: Stateless | Stateful,
    functions: Mapping[Schema, Callable[..., Any]],
    state: ObjectMember | None,
    *,
    cache: KernelCache | None,
) -> dict[Schema, Kernel]:
    delete_when = node.delete_when if isinstance(node, Stateful) else None
    if isinstance(node, Stateful):
        for function in filter(isgeneratorfunction, functions.values()):
            reason = "Numba's generators change a copy of the state; return a list instead"
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
    """The functions of a computation that may be marked `@bettong.compiled`, by their input schema."""
    if isinstance(node, Stateful):
        return node.handlers
    if not isinstance(node, Stateless) or node.parent.schema is None:
        return {}
    return {node.parent.schema: node.function}


def _form(
    node: Stateless | Stateful, takes: Schema, state: ObjectMember | None, function: Callable[..., Any]
) -> KernelForm:
    if node.returns is Returns.WHETHER:
        return KernelForm(takes, state, Returns.WHETHER, None)
    is_silent = get_type_hints(function).get("return") is type(None) or (
        isinstance(node, Stateful) and node.returns is Returns.ONE and _returns_none(function)
    )
    returns = Returns.NOTHING if is_silent else node.returns
    deletes = isinstance(node, Stateful) and node.delete_when is not None
    return KernelForm(takes, state, returns, node.schema, deletes)


def _returns_none(function: Callable[..., Any]) -> bool:
    """Whether its byte code returns nothing but None: to Numba that is of no type that has fields."""
    for before, step in pairwise(dis.get_instructions(function)):
        if step.opname == "RETURN_CONST" and step.argval is not None:
            return False
        if step.opname == "RETURN_VALUE" and (
            step.is_jump_target or before.opname != "LOAD_CONST" or before.argval is not None
        ):
            return False
    return True
