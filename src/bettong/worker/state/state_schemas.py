"""The schema of a computation's states, by which states of another version of the application are recognized.

A state is taken over only under an equal schema: the same messages, key and fields, and the same `version=`. Otherwise
`migrate=` makes a new state from an old one, or the stage stops: going on anyway would give results that no version of
the application ever meant.
"""

import dataclasses
import hashlib
from collections.abc import Callable
from types import CodeType
from typing import Any

import numpy as np

from bettong.application.joins.joined import Joined
from bettong.application.key import key_name
from bettong.application.nodes.stateful import Stateful
from bettong.application.plan import Stage
from bettong.application.windows.windowed import Windowed
from bettong.errors import StateChangedError
from bettong.user_errors import ANY_ERROR
from bettong.v1.snapshot_pb2 import StateSchema
from bettong.worker.state.classes import functions_of
from bettong.worker.state.record_layout import is_array, layout_of
from bettong.worker.state_members import PlainMember

# The least number of keys in an increment, if there are as many: so a small state is written whole each time,
# and a large one in rounds of some milliseconds each.
INCREMENT_KEYS = 4096

# Where at least one key in this many has changed, writing all in sequence is faster than picking those.
WHOLE_FROM = 4

# Characters of what a migrate= raised, in the error.
_REASON_SHOWN = 300

# Makes a state of this version from one of an older version, whose fields it finds as attributes.
Migration = Callable[[Any], Any]


def state_schema_of(stage: Stage, node: Stateful, *, records: bool) -> StateSchema:
    """The schema of a computation's states. Equal applications have equal ones in every process.

    `records`: they are records of an array. Compiled and vectorized functions keep the same: one may follow the other.
    """
    takes = sorted(f"{schema.name} {{{_tokens(schema.fields)}}}" for schema in node.handlers)
    keys = sorted({key_name(entry.key) for entry in stage.inputs if entry.key is not None})
    layout = (
        f"{'compiled' if records else 'Python'} state {_state(node, records=records)} by {', '.join(keys)}"
        f" of {', '.join(takes)}{node.settings}"
    )
    return StateSchema(layout=layout, version=node.version, code=_code(_functions(node)))


def migration(name: str, stored: StateSchema, node: Stateful, current: StateSchema) -> Migration | None:
    """How stored states become those of `node`; None when they are such states already.

    Raises StateChangedError, which says what has changed and what an operator can do; what it returns raises it, too.
    """
    if (stored.layout, stored.version) == (current.layout, current.version):
        return None
    forms = [each.layout.partition(" ")[0] for each in (stored, current)]
    if node.migrate is None or forms[0] != forms[1]:
        remedy = (
            "give its stateful(...) a migrate= function"
            if forms[0] == forms[1]
            else "a state changes between compiled and Python only by a reset"
        )
        raise StateChangedError(
            f"{name}: computation {node.name!r} has changed: its state was saved as version {stored.version},"
            f" {stored.layout}; it is version {current.version}, {current.layout} now. Run the version that saved it,"
            f" {remedy}, or delete the state with `bettong state reset`, so that it is folded from the log again"
        )
    migrate, version = node.migrate, stored.version

    def migrated(old: Any) -> Any:
        try:
            return migrate(old, version)
        except ANY_ERROR as error:
            reason = f"{type(error).__name__}: {error}"[:_REASON_SHOWN]
            raise StateChangedError(
                f"{name}: computation {node.name!r}: migrate= raised {reason} for a state of version {version}. Run the"
                " version that saved it, mend the function, or delete the state with `bettong state reset`, so that it"
                " is folded from the log again"
            ) from error

    return migrated


def _functions(node: Stateful) -> list[Any]:
    """The functions that decide what a state becomes."""
    return [*functions_of(node), *([node.delete_when] if node.delete_when is not None else [])]


def _tokens(fields: Any) -> str:
    return ", ".join(field.token for field in fields)


def _state(node: Stateful, *, records: bool) -> str:
    """The class of a state, and its fields: with dtypes and shapes of arrays, and what records nest."""
    state = node.state
    name = getattr(state, "__qualname__", type(state).__qualname__)
    made = state() if not records else None
    nested = _nested(node) if records else {}
    if isinstance(state, type) and dataclasses.is_dataclass(state):
        fields = ", ".join(
            f"{field.name}: {_type(field.type)}{_array(getattr(made, field.name, None))}{nested.get(field.name, '')}"
            for field in dataclasses.fields(state)
        )
        return f"{name} {{{fields}}}"
    return f"{name}{_array(made)}"


def _nested(node: Stateful) -> dict[str, str]:
    """By field, what its record holds, where an annotation does not say all of it."""
    if isinstance(node, Windowed | Joined):
        return {}
    members = layout_of(node).members
    return {each.name: f" = {each.token}" for each in members if not isinstance(each, PlainMember)}


def _array(value: Any) -> str:
    return f" of {value.dtype} {value.shape}" if isinstance(value, np.ndarray) else ""


def _type(annotation: Any) -> str:
    if is_array(annotation):  # whatever numpy calls it
        return "ndarray"
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))


def _code(functions: list[Any]) -> int:
    """64 bits over what functions do: their byte code and constants, not their lines and comments."""
    digest = hashlib.blake2b(digest_size=8)
    todo = [getattr(getattr(each, "py_func", each), "__code__", None) for each in functions]
    while todo:
        code = todo.pop()
        if isinstance(code, CodeType):
            digest.update(code.co_code)
            digest.update(repr(code.co_names).encode())
            todo.extend(code.co_consts)
        else:
            digest.update(repr(code).encode())
    return int.from_bytes(digest.digest(), "little")
