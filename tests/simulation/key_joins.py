"""What joins of one key mean, from the text of their semantics: all that ever came is kept, and looked through."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bettong import Stream, Window
from bettong.application.joins.joined import Combine, Joined, joined
from bettong.application.joins.kinds import AsOf, How, InWindow, JoinKind, Latest, Within
from bettong.application.lifetime import Lifetime
from bettong.application.nodes.node import StreamNode
from bettong.application.streams import JoinedStream
from bettong.application.windows.kinds import Ranges, Sessions
from tests.simulation.open_windows import OpenWindows, WindowOptions


@dataclass(eq=False)
class Came:
    """A message that came, and whether it had a partner. `number`: how many came before."""

    number: int
    right: bool
    at_ns: int
    message: Any
    is_late: bool = False
    is_partly_late: bool = False
    is_paired: bool = False


class Due(NamedTuple):
    """Who comes by time: when that was due, the event time of the result, and the two messages."""

    due_ns: int
    at_ns: int
    left: Any
    right: Any


@dataclass
class KeyJoin:
    """Of one key."""

    how: How
    came: list[Came] = field(default_factory=list)
    watermark_ns: int = 0
    log_ns: int = 0

    def ends(self, last_ns: int) -> bool:  # noqa: ARG002 - where it lives by no log clock
        """Ends what has had no message since that time of the log clock; whether there is any."""
        return False

    def take(self, right: bool, at_ns: int, message: Any) -> tuple[bool, list[tuple[Any, Any]]]:  # noqa: FBT001
        """A message comes, when the watermark is at `watermark_ns`: whether it is late, and its pairs."""
        mine = Came(len(self.came), right, at_ns, message)
        found = list(self._pairs(mine))
        self.came.append(mine)
        return mine.is_late, found

    def due(self) -> Due | None:
        """The first that is due by `watermark_ns`; it is not any more then."""
        raise NotImplementedError

    def _pairs(self, mine: Came) -> Iterator[tuple[Any, Any]]:
        raise NotImplementedError

    @property
    def is_known(self) -> bool:
        """Whether anything of the key is kept."""
        raise NotImplementedError

    def _emits_alone(self, *, right: bool) -> bool:
        return self.how in (("right" if right else "left"), "outer")

    def _side(self, *, right: bool) -> list[Came]:
        return [each for each in self.came if each.right == right and not each.is_late]


@dataclass
class WithinKey(KeyJoin):
    """See `Stream.join_within`."""

    kind: Within = field(default_factory=lambda: Within(0, 0))

    def _partner_times(self, right: bool, at_ns: int) -> range:  # noqa: FBT001
        first_ns, last_ns = self.kind.lower_ns, self.kind.upper_ns
        if right:
            first_ns, last_ns = -last_ns, -first_ns
        return range(at_ns + first_ns, at_ns + last_ns + 1)

    def _is_found(self, right: bool, at_ns: int) -> bool:  # noqa: FBT001
        """Until the watermark is past the last possible partner."""
        return self._partner_times(right, at_ns)[-1] >= self.watermark_ns

    def _until_ns(self, right: bool, at_ns: int) -> int:  # noqa: FBT001
        """The last watermark at which it is kept."""
        last_ns = self._partner_times(right, at_ns)[-1]
        return max(at_ns, last_ns) if self._emits_alone(right=right) else last_ns

    def _pairs(self, mine: Came) -> Iterator[tuple[Any, Any]]:
        times = self._partner_times(mine.right, mine.at_ns)
        # The last one is kept the longest.
        mine.is_late = not self._is_found(not mine.right, times[-1])
        for other in () if mine.is_late else self._side(right=not mine.right):
            if other.at_ns in times and self._is_found(other.right, other.at_ns):
                mine.is_paired = other.is_paired = True
                left, right = (other, mine) if mine.right else (mine, other)
                yield left.message, right.message
        is_over = not mine.is_late and self._until_ns(mine.right, mine.at_ns) < self.watermark_ns
        if is_over and not mine.is_paired and self._emits_alone(right=mine.right):
            mine.is_paired = True
            yield (None, mine.message) if mine.right else (mine.message, None)

    def due(self) -> Due | None:
        """See KeyJoin."""
        over = [
            (until_ns, right, each.at_ns, each.number, each)
            for right in (False, True)
            if self._emits_alone(right=right)
            for each in self._side(right=right)
            if not each.is_paired and (until_ns := self._until_ns(right, each.at_ns)) < self.watermark_ns
        ]
        if not over:
            return None
        until_ns, *_, first = min(over)
        first.is_paired = True
        sides = (None, first.message) if first.right else (first.message, None)
        return Due(until_ns + 1, until_ns, *sides)

    @property
    def is_known(self) -> bool:
        """See KeyJoin."""
        return any(
            self._until_ns(right, each.at_ns) >= self.watermark_ns
            for right in (False, True)
            for each in self._side(right=right)
        )


@dataclass
class AsOfKey(KeyJoin):
    """See `Stream.join_as_of`."""

    kind: AsOf = field(default_factory=lambda: AsOf(None))
    waiting: list[Came] = field(default_factory=list)

    def _pairs(self, mine: Came) -> Iterator[tuple[Any, Any]]:
        is_older, held = mine.at_ns < self.watermark_ns, self._valid(self.watermark_ns)
        if mine.right:
            is_past = held is not None and held.at_ns > mine.at_ns
            mine.is_late = is_older and (is_past or not self._is_near(mine, self.watermark_ns))
        elif not is_older:
            self.waiting.append(mine)
        elif held is not None and held.at_ns <= mine.at_ns:
            yield mine.message, held.message
        else:
            mine.is_late = True

    def _valid(self, at_ns: int) -> Came | None:
        """The version at a time."""
        found = [
            each for each in self._side(right=True) if each.at_ns <= at_ns and self._is_near(each, at_ns)
        ]
        return max(found, key=lambda each: (each.at_ns, each.number), default=None)

    def _is_near(self, version: Came, at_ns: int) -> bool:
        return self.kind.tolerance_ns is None or version.at_ns + self.kind.tolerance_ns >= at_ns

    def due(self) -> Due | None:
        """See KeyJoin."""
        over = [each for each in self.waiting if each.at_ns < self.watermark_ns]
        for first in sorted(over, key=lambda each: (each.at_ns, each.number)):
            self.waiting.remove(first)
            found = self._valid(first.at_ns)
            if found is not None or self._emits_alone(right=False):
                value = None if found is None else found.message
                return Due(first.at_ns + 1, first.at_ns, first.message, value)
        return None

    @property
    def is_known(self) -> bool:
        """See KeyJoin."""
        return bool(self.waiting) or any(
            self._is_near(each, self.watermark_ns) for each in self._side(right=True)
        )


@dataclass
class LatestKey(KeyJoin):
    """See `Stream.join_latest`."""

    kind: Latest = field(default_factory=Latest)
    value: Any = None
    last_ns: int = 0

    def _pairs(self, mine: Came) -> Iterator[tuple[Any, Any]]:
        if mine.right:
            is_gone = self.kind.deletes is not None and self.kind.deletes(mine.message)
            self.value, self.last_ns = None if is_gone else mine.message, self.log_ns
        elif self.value is not None or self._emits_alone(right=False):
            yield mine.message, self.value

    def ends(self, last_ns: int) -> bool:
        """See KeyJoin."""
        if self.value is None or self.last_ns > last_ns:
            return False
        self.value = None
        return True

    def due(self) -> Due | None:
        """See KeyJoin."""
        return None

    @property
    def is_known(self) -> bool:
        """See KeyJoin."""
        return self.value is not None


class _Members:
    """Of a window: what is in it, in the order in which that came to be together. See Aggregation."""

    def initial(self) -> list[Came]:
        return []

    def update(self, members: list[Came], one: Came) -> list[Came]:
        return [*members, one]

    def output(self, key: Any, members: list[Came], window: Window) -> list[Came]:  # noqa: ARG002
        return members


@dataclass
class InWindowKey(KeyJoin):
    """See `Stream.join_window`."""

    kind: InWindow | None = None
    windows: OpenWindows | None = None
    # The pairs of windows that are over.
    over: list[Due] = field(default_factory=list)

    def _own(self) -> OpenWindows:
        if self.windows is None:
            assert self.kind is not None
            of = self.kind.windowing.kind
            assert isinstance(of, Ranges | Sessions)
            self.windows = OpenWindows(WindowOptions(of), _Members())
        return self.windows

    def _pairs(self, mine: Came) -> Iterator[tuple[Any, Any]]:
        found = self._own().take(mine, mine.at_ns, self.watermark_ns, self.log_ns)
        mine.is_late, mine.is_partly_late = found.is_late, found.is_partly_late
        yield from ()

    def due(self) -> Due | None:
        """See KeyJoin."""
        while not self.over and (found := self._own().due(self.log_ns, self.watermark_ns)):
            ((due_ns, _),) = found
            at_ns, windows = self._own().close()
            (members,) = self._own().results(windows)
            lefts, rights = (
                [each.message for each in members if each.right is right] for right in (False, True)
            )
            if not rights and self._emits_alone(right=False):
                rights = [None]
            elif not lefts and self._emits_alone(right=True):
                lefts = [None]
            self.over = [Due(due_ns, at_ns, left, right) for left in lefts for right in rights]
        return self.over.pop(0) if self.over else None

    @property
    def is_known(self) -> bool:
        """See KeyJoin."""
        return bool(self._own().open)


def join_streams(
    left: Stream[Any],
    right: Stream[Any],
    combine: Combine,
    kind: JoinKind,
    how: How,
    *,
    lifetime: Lifetime | None = None,
    **options: Any,
) -> JoinedStream[Any, Any, Any]:
    """Bounds, and a `lifetime`, of any number of ns, which an application cannot give."""

    def make(of_left: StreamNode, of_right: StreamNode) -> Joined:
        return joined("join", of_left, of_right, combine, kind, how, lifetime, **options)

    return left._joined(right, make)


def key_join(kind: JoinKind, how: How, watermark_ns: int = 0) -> KeyJoin:
    """That of a key of which nothing has come."""
    if isinstance(kind, Within):
        return WithinKey(how, watermark_ns=watermark_ns, kind=kind)
    if isinstance(kind, AsOf):
        return AsOfKey(how, watermark_ns=watermark_ns, kind=kind)
    if isinstance(kind, InWindow):
        return InWindowKey(how, watermark_ns=watermark_ns, kind=kind)
    return LatestKey(how, watermark_ns=watermark_ns, kind=kind)
