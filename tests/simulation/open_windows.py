"""What windows of one key mean: all that are open, each with its messages, written from the text of the semantics."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from math import gcd
from typing import Any

from bettong import Window
from bettong.application.windows.kinds import Counts, Ephemeral, Ranges, Sessions
from bettong.application.windows.windowing import Late


@dataclass(frozen=True)
class WindowOptions:
    """What `Stream.window` is given, beside the aggregation."""

    kind: Ranges | Sessions | Counts | Ephemeral
    late: Late = "drop"
    emit_empty: bool = False
    early_ns: int | None = None


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
    # The open windows that have changed since they gave a result, and when the log clock brings the next one.
    changed: set[tuple[int, int]] = field(default_factory=set)
    early_ns: int | None = None
    # Of an ephemeral window that is over: until when its key is remembered.
    forget_ns: int | None = None
    _over: tuple[int, int] = (0, 0)

    @property
    def is_known(self) -> bool:
        """Whether there is anything of the key."""
        return bool(self.open) or self.forget_ns is not None

    def take(self, message: Any, at_ns: int, watermark_ns: int, log_ns: int) -> WindowedMessage:
        """A message comes. Raises what the aggregation raises; then it is nowhere."""
        kind, mine = self.options.kind, (message, at_ns)
        if isinstance(kind, Counts):
            return self._take_group(kind, mine, log_ns)
        own = self._own(kind, at_ns, watermark_ns)
        late = WindowedMessage(is_late=not own)
        if late.is_late:
            own = self._oldest(kind, watermark_ns) if self.options.late == "oldest" else []
            if own:  # it is of the first stretch of time of that window, behind what is there
                mine = (message, own[0][0])
            if self.options.late == "fire":
                late.results.append(self._folded([mine], self._shown(kind, at_ns)))
        if own:
            self._folded([mine])
            if self.options.early_ns is not None and self.early_ns is None:
                self.early_ns = log_ns + self.options.early_ns
        if isinstance(kind, Sessions) and own and not late.is_late:
            start, end = min(at_ns, own[0][0]), max(at_ns + kind.gap_ns + 1, own[-1][1])
            self.open[start, end] = [each for window in own for each in self.open.pop(window, [])] + [mine]
            self.changed = self.changed - {*own} | {(start, end)}
            return late
        for window in own:
            self.open.setdefault(window, []).append(mine)
            self.changed.add(window)
        late.is_partly_late = isinstance(kind, Ranges) and 0 < len(own) < len(_covering(kind, at_ns))
        late.is_partly_late &= not late.is_late
        return late

    def due(self, log_ns: int, watermark_ns: int) -> list[tuple[int, bool]]:
        """When the first window is over, if it is by now, and when early results are due, if they are: True."""
        kind = self.options.kind
        if isinstance(kind, Counts):
            is_due = self.timeout_ns is not None and self.timeout_ns <= log_ns
            return [(self.timeout_ns, False)] if is_due and self.timeout_ns is not None else []
        delay_ns = 0 if isinstance(kind, Ephemeral) else kind.delay_ns
        over_ns = min((end for _, end in self.open), default=self.forget_ns)
        found = [] if over_ns is None else [(over_ns + delay_ns, False)]
        found = [each for each in found if each[0] <= watermark_ns]
        if self.early_ns is not None and self.early_ns <= log_ns:
            found.append((self.early_ns, True))
        return found

    def close(self) -> tuple[int, list[Window]]:
        """The event time of what the window that is over gives, and the window; `results` gives the rest.

        None of an ephemeral one that gave its result before: then its key is forgotten.
        """
        kind = self.options.kind
        if isinstance(kind, Counts):
            time_ns, window = self._close_group()
            return time_ns, [window]
        if self.forget_ns is not None:
            self.forget_ns = None
            return 0, []
        self._over = min(self.open, key=lambda window: window[1])
        if isinstance(kind, Ephemeral) and kind.keep_ns:
            self.forget_ns = self._over[1] + kind.keep_ns
        return self._over[1] - 1, [Window(*self._over)]

    def so_far(self) -> tuple[int, list[Window]]:
        """The event time of early results, that of the oldest open window, and the windows that have changed."""
        changed = sorted(self.changed, key=lambda window: window[1])
        self.changed, self.early_ns = set(), None
        oldest = min((end for _, end in self.open), default=1)
        return oldest - 1, [Window(*each, final=False) for each in changed]

    def results(self, windows: list[Window]) -> list[Any]:
        """What windows give; one that is final is open no more. Raises what the aggregation raises."""
        kind = self.options.kind
        given: list[tuple[list[tuple[Any, int]], Window]] = []
        for window in windows:
            own = self._over if window.final else (window.start, window.end)
            members = self.open[own]
            if isinstance(kind, Ranges):
                # The messages of a stretch of time in the log's order, and stretches by time.
                pane_ns = gcd(kind.size_ns, kind.slide_ns)
                members = sorted(members, key=lambda each: (each[1] - kind.offset_ns) // pane_ns)
            if window.final:
                del self.open[own]
                self.changed.discard(own)
                self._open_empty(kind)
            given.append((members, window))
        return [self._folded(members, window) for members, window in given]

    def _open_empty(self, kind: Ranges | Sessions | Counts | Ephemeral) -> None:
        """Those between the window that is over and the last one that is open."""
        if isinstance(kind, Ranges) and self.options.emit_empty and self.open:
            last = max(end for _, end in self.open)
            for end in range(self._over[1] + kind.slide_ns, last, kind.slide_ns):
                self.open.setdefault((end - kind.size_ns, end), [])

    def _own(
        self, kind: Ranges | Sessions | Ephemeral, at_ns: int, watermark_ns: int
    ) -> list[tuple[int, int]]:
        """The windows that a message goes into, in order: none when it is late."""
        if isinstance(kind, Ephemeral):
            own = (at_ns, at_ns + kind.trigger_ns)
            is_over = self.forget_ns is not None or own[1] <= watermark_ns
            return list(self.open) or ([] if is_over else [own])
        if isinstance(kind, Ranges):
            return [each for each in _covering(kind, at_ns) if each[1] + kind.delay_ns > watermark_ns]
        near = [each for each in self.open if each[0] - kind.gap_ns <= at_ns <= each[1] - 1]
        alone = (at_ns, at_ns + kind.gap_ns + 1)
        return sorted(near) or ([alone] if alone[1] + kind.delay_ns > watermark_ns else [])

    def _oldest(self, kind: Ranges | Sessions | Ephemeral, watermark_ns: int) -> list[tuple[int, int]]:
        if not isinstance(kind, Ranges):
            return [min(self.open)] if self.open else []
        end = watermark_ns - kind.delay_ns + 1
        while (end - kind.size_ns - kind.offset_ns) % kind.slide_ns:
            end += 1
        return [(end - kind.size_ns, end)]

    def _shown(self, kind: Ranges | Sessions | Ephemeral, at_ns: int) -> Window:
        """The window of a late message that is a result by itself."""
        if isinstance(kind, Ephemeral):
            return Window(*(self._over if self.forget_ns is not None else (at_ns, at_ns + kind.trigger_ns)))
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
