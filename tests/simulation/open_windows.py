"""What windows of one key mean: all that are open, each with its messages, written from the text of the semantics."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from math import gcd
from typing import Any

from bettong import Window
from bettong.application.windows.kinds import Counts, Ranges, Sessions
from bettong.application.windows.windowing import Late


@dataclass(frozen=True)
class WindowOptions:
    """What `Stream.window` is given, beside the aggregation."""

    kind: Ranges | Sessions | Counts
    late: Late = "drop"
    emit_empty: bool = False


def is_group(of: WindowOptions) -> bool:
    """Whether they go by the number of messages: then one may stay open for ever."""
    return isinstance(of.kind, Counts) and of.kind.timeout_ns is None


@dataclass
class WindowedMessage:
    """What became of a message."""

    is_late: bool = False
    is_partly_late: bool = False
    results: list[Any] = field(default_factory=list)


@dataclass
class OpenWindows:
    """Of one key. `open`: by start and end, messages with their event times, in the log's order."""

    options: WindowOptions
    aggregation: Any
    open: dict[tuple[int, int], list[tuple[Any, int]]] = field(default_factory=dict)
    key: Any = None
    # When the log clock brings the timeout of a group.
    timeout_ns: int | None = None
    _over: tuple[int, int] = (0, 0)

    def take(self, message: Any, at_ns: int, watermark_ns: int, log_ns: int) -> WindowedMessage:
        """A message comes. Raises what the aggregation raises; then it is nowhere."""
        kind, mine = self.options.kind, (message, at_ns)
        if isinstance(kind, Counts):
            return self._take_group(kind, mine, log_ns)
        own = self._own(kind, at_ns, watermark_ns)
        late = WindowedMessage(is_late=not own)
        if late.is_late:
            own = self._oldest(kind, watermark_ns) if self.options.late == "oldest" else []
            # It counts as a message of that window's beginning.
            mine = (message, own[0][0]) if own else mine
            if self.options.late == "fire":
                late.results.append(self._folded([mine], self._shown(kind, at_ns)))
        if own:
            self._folded([mine])
        if isinstance(kind, Sessions) and own and not late.is_late:
            start, end = min(at_ns, own[0][0]), max(at_ns + kind.gap_ns + 1, own[-1][1])
            self.open[start, end] = [each for window in own for each in self.open.pop(window, [])] + [mine]
            return late
        for window in own:
            self.open.setdefault(window, []).append(mine)
        late.is_partly_late = isinstance(kind, Ranges) and 0 < len(own) < len(_covering(kind, at_ns))
        late.is_partly_late &= not late.is_late
        return late

    def due(self, log_ns: int, watermark_ns: int) -> int | None:
        """When the first window is over, if it is by now."""
        if isinstance(self.options.kind, Counts):
            return self.timeout_ns if self.timeout_ns is not None and self.timeout_ns <= log_ns else None
        due_ns = min((end for _, end in self.open), default=watermark_ns + 1) + self.options.kind.delay_ns
        return due_ns if due_ns <= watermark_ns else None

    def close(self) -> tuple[int, Window]:
        """The event time of what the window that is over gives, and the window; `results` gives the rest."""
        if isinstance(self.options.kind, Counts):
            return self._close_group()
        self._over = min(self.open, key=lambda window: window[1])
        return self._over[1] - 1, Window(*self._over)

    def results(self, window: Window) -> list[Any]:
        """What the window gives, which is open no more. Raises what the aggregation raises."""
        kind, members = self.options.kind, self.open.pop(self._over)
        if isinstance(kind, Ranges) and self.options.emit_empty and self.open:
            last = max(end for _, end in self.open)
            for end in range(self._over[1] + kind.slide_ns, last, kind.slide_ns):
                self.open.setdefault((end - kind.size_ns, end), [])
        if isinstance(
            kind, Ranges
        ):  # the messages of a stretch of time in the log's order, and stretches by time
            pane_ns = gcd(kind.size_ns, kind.slide_ns)
            members = sorted(members, key=lambda each: (each[1] - kind.offset_ns) // pane_ns)
        return [self._folded(members, window)]

    def _own(self, kind: Ranges | Sessions, at_ns: int, watermark_ns: int) -> list[tuple[int, int]]:
        """The windows that a message goes into, in order: none when it is late."""
        if isinstance(kind, Ranges):
            return [each for each in _covering(kind, at_ns) if each[1] + kind.delay_ns > watermark_ns]
        near = [each for each in self.open if each[0] - kind.gap_ns <= at_ns <= each[1] - 1]
        alone = (at_ns, at_ns + kind.gap_ns + 1)
        return sorted(near) or ([alone] if alone[1] + kind.delay_ns > watermark_ns else [])

    def _oldest(self, kind: Ranges | Sessions, watermark_ns: int) -> list[tuple[int, int]]:
        if isinstance(kind, Sessions):
            return [min(self.open)] if self.open else []
        end = watermark_ns - kind.delay_ns + 1
        while (end - kind.size_ns - kind.offset_ns) % kind.slide_ns:
            end += 1
        return [(end - kind.size_ns, end)]

    def _shown(self, kind: Ranges | Sessions, at_ns: int) -> Window:
        """The window of a late message that is a result by itself."""
        if isinstance(kind, Ranges):
            return Window(*_covering(kind, at_ns)[-1])
        return Window(at_ns, at_ns + kind.gap_ns + 1)

    def _take_group(self, kind: Counts, mine: tuple[Any, int], log_ns: int) -> WindowedMessage:
        self._folded([mine])
        group = self.open.setdefault((0, 0), [])
        if not group and kind.timeout_ns is not None:
            self.timeout_ns = log_ns + kind.timeout_ns
        group.append(mine)
        return WindowedMessage()

    def full_group(self) -> Window | None:
        """The group that a message has made full."""
        kind = self.options.kind
        if not isinstance(kind, Counts) or len(self.open.get((0, 0), ())) < kind.count:
            return None
        return self._close_group()[1]

    def _close_group(self) -> tuple[int, Window]:
        self._over, self.timeout_ns = (0, 0), None
        times = [at_ns for _, at_ns in self.open[0, 0]]
        return max(times), Window(min(times), max(times) + 1)

    def _folded(self, members: list[tuple[Any, int]], window: Window | None = None) -> Any:
        """What the aggregation makes of messages: the accumulator, or the result of the window."""
        aggregation = self.aggregation
        accumulator = aggregation.initial()
        for message, _ in members:
            accumulator = aggregation.update(accumulator, copy(message))
        return accumulator if window is None else aggregation.output(self.key, accumulator, window)


def _covering(kind: Ranges, at_ns: int) -> list[tuple[int, int]]:
    """The windows of the grid that cover a time, the oldest first."""
    last = (at_ns - kind.offset_ns) // kind.slide_ns * kind.slide_ns + kind.offset_ns
    starts = range(last, at_ns - kind.size_ns, -kind.slide_ns)
    return [(start, start + kind.size_ns) for start in reversed(starts)]
