"""The nodes of a join and of its late messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypedDict, Unpack

from bettong.application.callables import check_options, name_of
from bettong.application.execution_mode import ExecutionMode, execution_mode_of
from bettong.application.joins.kinds import AsOf, How, InWindow, JoinKind, Latest, Within, alone_sides
from bettong.application.joins.states import AsOfState, LatestState, OuterState, WithinState, is_empty
from bettong.application.keys import key_types
from bettong.application.lifetime import Lifetime
from bettong.application.nodes.computation import Computation
from bettong.application.nodes.node import StreamNode
from bettong.application.nodes.stateful import Stateful
from bettong.application.on_error import DEAD_LETTER, OnError, check_on_error
from bettong.application.returns import Returns
from bettong.application.signatures import check_lambda_result, check_version, join_output, or_none
from bettong.application.timers import Clock, StateTimer
from bettong.errors import ApplicationError
from bettong.schema.schema import Schema

# Makes a result from a message of each side, or returns None for none.
Combine = Callable[[Any, Any], Any]


class JoinOptions(TypedDict, total=False):
    """The keyword arguments of all joins: see `stateful`."""

    name: str | None
    version: int
    on_error: OnError


@dataclass(frozen=True, eq=False, kw_only=True)
class Joined(Stateful):
    """A join of `parent`, its left side, and `right`. `method`: the method of `Stream` that made it."""

    method: str
    right: StreamNode
    combine: Combine
    kind: JoinKind
    how: How
    mode: ExecutionMode
    judges_lateness: ClassVar[bool] = True

    @property
    def parents(self) -> tuple[StreamNode, ...]:
        """See StreamNode."""
        return (self.parent, self.right)

    @property
    def sides(self) -> tuple[Schema, Schema]:
        """The schemas of both sides."""
        return self.parent.one_schema(self.name), self.right.one_schema(self.name)

    @property
    def lacks(self) -> tuple[bool, bool]:
        """Whether `combine` may get None for the left message, and whether for the right one."""
        return _missing_sides(self.how)

    @property
    def settings(self) -> str:
        """See Stateful. A change of `how` changes only the states of `join_within`."""
        how = f" {self.how}" if isinstance(self.kind, Within) else ""
        return f"{super().settings}, join{how} {self.kind}"


class LatestJoined(Joined):
    """A join that depends on the order of the log alone."""

    judges_lateness: ClassVar[bool] = False


@dataclass(frozen=True, eq=False)
class LateSide(Computation):
    """See `JoinedStream.late`. Its messages are those of `parent`, one of its sides, that are late for `joined`."""

    joined: Joined
    is_right: bool
    on_error: OnError = DEAD_LETTER
    method = "late"


def late_side(joined: Joined, *, is_right: bool) -> LateSide:
    """The node of one side's late messages. Raises ApplicationError for a join that has none."""
    side = "right" if is_right else "left"
    if not joined.judges_lateness:
        raise ApplicationError(
            f"{joined.method} {joined.name!r}: .late_{side}: it follows the order of messages, and none is late"
        )
    name, parent = f"{joined.name}-late-{side}", joined.right if is_right else joined.parent
    schema = parent.one_schema(name)
    return LateSide(name, schema, keyed=True, parent=parent, joined=joined, is_right=is_right)


def joined(
    method: str,
    left: StreamNode,
    right: StreamNode,
    combine: Combine,
    kind: JoinKind,
    how: How,
    lifetime: Lifetime | None = None,
    /,
    **options: Unpack[JoinOptions],
) -> Joined:
    """The node of a join. Raises ApplicationError for sides whose keys differ in type, and for an invalid `combine`."""
    check_options(f"{method} of {left.name!r}", options, JoinOptions)
    lacks = _missing_sides(how)
    takes = tuple(or_none(side.schema, lack) for side, lack in zip((left, right), lacks, strict=True))
    check_lambda_result(method, options.get("name"), combine, takes, "Result | None")
    name = options.get("name") or name_of(combine)
    version, on_error = options.get("version", 1), options.get("on_error", DEAD_LETTER)
    owner = f"{method} {name!r}"
    check_on_error(owner, on_error)
    check_version(owner, version)
    _check_sides(owner, left, right)
    schemas = (left.one_schema(name), right.one_schema(name))
    modes = (ExecutionMode.PYTHON, ExecutionMode.COMPILED)
    output = join_output(owner, combine, schemas, lacks, modes)
    node = LatestJoined if isinstance(kind, Latest) else Joined
    return node(
        name,
        output.schema,
        keyed=True,
        parent=left,
        handlers=dict.fromkeys(schemas, combine),
        state=_state_class(kind, how),
        returns=Returns.MANY,
        timers=_timers(kind, combine),
        lifetime=lifetime,
        delete_when=is_empty,
        version=version,
        on_error=on_error,
        method=method,
        mode=execution_mode_of(combine),
        right=right,
        combine=combine,
        kind=kind,
        how=how,
    )


def _missing_sides(how: How) -> tuple[bool, bool]:
    """Where a side emits messages alone, the other one is None."""
    left_alone, right_alone = alone_sides(how)
    return right_alone, left_alone


def _check_sides(owner: str, left: StreamNode, right: StreamNode) -> None:
    both = f"{left.name!r} and {right.name!r}"
    if keyless := [side.name for side in (left, right) if not side.keyed]:
        raise ApplicationError(
            f"{owner}: {both} are joined by key, and {keyless[0]!r} has none; call key_by on it first"
        )
    types = {side.name: key_types(side) for side in (left, right)}
    if len({kind for found in types.values() for kind in found.values()}) > 1:
        kinds = ", ".join(f"{name} ({' or '.join(sorted(set(of.values())))})" for name, of in types.items())
        raise ApplicationError(
            f"{owner}: {both} have keys of different types, which never meet: {kinds}; call key_by on one of them, for"
            " keys of the other one's type"
        )


def _state_class(kind: JoinKind, how: How) -> type[Any]:
    if isinstance(kind, Within):
        return WithinState if how == "inner" else OuterState
    if isinstance(kind, InWindow):
        return kind.windowing.state
    return AsOfState if isinstance(kind, AsOf) else LatestState


def _timers(kind: JoinKind, combine: Combine) -> tuple[StateTimer, ...]:
    return () if isinstance(kind, Latest) else (StateTimer("due", Clock.EVENT, combine),)
