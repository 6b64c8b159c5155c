"""`Stream.window`: its node, and the one of its late messages."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar

from bettong.application.callables import name_of
from bettong.application.merging import check_keyed
from bettong.application.nodes.computation import Computation
from bettong.application.nodes.node import StreamNode
from bettong.application.nodes.stateful import Stateful
from bettong.application.on_error import DEAD_LETTER, OnError, check_on_error
from bettong.application.returns import Returns
from bettong.application.signatures import check_version
from bettong.application.timers import Clock
from bettong.application.windows.aggregation import Aggregation
from bettong.application.windows.kinds import Ephemeral, WindowKind
from bettong.application.windows.states import is_empty
from bettong.application.windows.windowing import Late, Windowing, windowing_of


@dataclass(frozen=True, eq=False, kw_only=True)
class Windowed(Stateful):
    """See `Stream.window`. Its functions are those of the aggregation.

    `merges_partials`: whether it reads partials instead of messages: see `partials`.
    """

    windowing: Windowing
    needs_each_watermark: bool
    merges_partials: bool = False
    judges_lateness: ClassVar[bool] = True
    method = "window"

    @property
    def failing(self) -> Computation:
        """See Computation. With partials, messages fail where they are combined."""
        (combining,) = self.parent.parents if self.merges_partials else (self,)
        assert isinstance(combining, Computation)  # noqa: S101 - see `local_windows`
        return combining

    @property
    def goes_by_event_time(self) -> bool:
        """See Computation. Groups of messages need event times for their bounds."""
        return True

    @property
    def follows_log_clock(self) -> bool:
        """See Stateful."""
        return any(timer.clock is Clock.LOG for timer in self.timers)

    @property
    def settings(self) -> str:
        """See Stateful."""
        return f"{super().settings}, windows {self.windowing.kind} of {self.windowing.accumulated}"


@dataclass(frozen=True, eq=False)
class LateMessages(Computation):
    """See `WindowedStream.late`. Its messages are those of `parent` that are late for `windowed`."""

    windowed: Windowed
    on_error: OnError = DEAD_LETTER
    method = "late"


def windowed(
    parent: StreamNode,
    windows: WindowKind,
    aggregation: Aggregation[Any, Any, Any],
    *,
    name: str | None,
    late: Late,
    emit_empty: bool,
    early: timedelta | None,
    version: int,
    on_error: OnError,
) -> tuple[Windowed, LateMessages | None]:
    """The nodes of `window`: its results, and with late="side" its late messages. Raises ApplicationError."""
    name = name or name_of(aggregation)
    owner, schema = f"window {name!r}", parent.one_schema(name)
    check_on_error(owner, on_error)
    check_keyed(owner, parent)
    check_version(owner, version)
    windowing, output = windowing_of(
        owner, schema, windows, aggregation, late=late, emit_empty=emit_empty, early=early
    )
    node = Windowed(
        name,
        output.schema,
        keyed=True,
        parent=parent,
        handlers={schema: aggregation.update},
        state=windowing.state,
        returns=Returns.MANY,
        mode=windowing.mode,
        timers=windowing.timers,
        delete_when=is_empty,
        version=version,
        on_error=on_error,
        windowing=windowing,
        # With these, the effect of a message depends on what fired before it, even if it is not late.
        needs_each_watermark=emit_empty or isinstance(windows, Ephemeral),
    )
    if late != "side":
        return node, None
    return node, LateMessages(f"{name}-late", schema, keyed=True, parent=parent, windowed=node)
