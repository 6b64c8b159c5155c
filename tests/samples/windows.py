"""Amounts of keys by windows, and what the windows mean: message by message, from the text of their semantics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import bettong
from bettong import Application, Window
from bettong.application.streams import WindowedStream
from bettong.application.windows.kinds import Counts, Ephemeral, Ranges, Sessions, WindowKind

OUT = "meters.sink.out"
# One of each.
KINDS: dict[str, WindowKind] = {
    "tumbling": Ranges(10, 10, 3, 0),
    "sliding": Ranges(12, 4, 0, 5),
    "sessions": Sessions(6, 4),
    "counts": Counts(3, 40),
    "ephemeral": Ephemeral(12, 20),
}


@dataclass
class Amount:
    key: bettong.u32
    at: int
    value: int


@dataclass
class Seen:
    """What a firing saw. `values`: those of its messages, with a blank between."""

    key: bettong.u32
    start: int
    end: int
    values: str
    final: bool = True


class Values:
    """Which messages a window has, in which order."""

    def initial(self) -> list[int]:
        return []

    def update(self, accumulator: list[int], amount: Amount) -> list[int]:
        if amount.value < 0:
            raise ValueError("negative")
        accumulator.append(amount.value)
        return accumulator

    def combine(self, left: list[int], right: list[int]) -> list[int]:
        return [*left, *right]

    def output(self, key: int, accumulator: list[int], window: Window) -> Seen | None:
        return Seen(key, window.start, window.end, " ".join(map(str, accumulator)), window.final)


def windowed(app: Application, kind: WindowKind, **options: Any) -> WindowedStream[Seen, Amount]:
    """`in`, by windows, to `out`."""
    source = app.source("in", schema=Amount, key="key", event_time="at")
    node = source.window(kind, Values(), name="seen", **options)
    node.sink("out")
    return node


@dataclass
class Meaning:
    """Of one key: what fires is found by going through all windows, each time."""

    kind: WindowKind
    late: str = "drop"
    emit_empty: bool = False
    watermark_ns: int = 0
    # Of windows that are not over: their start and end, and (number of the message in the log, event time, value).
    open: dict[tuple[int, int], list[tuple[int, int, int]]] = field(default_factory=dict)
    lates: list[int] = field(default_factory=list)
    partly_late: int = 0
    # Of an ephemeral window: the one that fired last.
    fired: tuple[int, int] | None = None
    _number: int = 0

    def take(self, at_ns: int, value: int) -> Iterator[tuple[int, int, str]]:
        """A message comes; what fires at once."""
        self._number += 1
        mine = (self._number, at_ns, value)
        if isinstance(self.kind, Ranges):
            yield from self._take_range(self.kind, mine)
        elif isinstance(self.kind, Sessions):
            yield from self._take_session(self.kind, mine)
        elif isinstance(self.kind, Ephemeral):
            yield from self._take_ephemeral(self.kind, mine)

    def reach(self, watermark_ns: int) -> Iterator[tuple[int, int, str]]:
        """The watermark is there: what fires, in the order of what is due."""
        self.watermark_ns = max(self.watermark_ns, watermark_ns)
        delay_ns = self.kind.delay_ns if isinstance(self.kind, Ranges | Sessions) else 0
        over = sorted(
            (window for window in self.open if window[1] + delay_ns <= self.watermark_ns),
            key=lambda window: window[1],
        )
        while over:
            window = self.fired = over.pop(0)
            yield (*window, shown(self.open.pop(window)))
            if self.emit_empty and isinstance(self.kind, Ranges) and self.open:
                size_ns, last = self.kind.size_ns, max(end for _, end in self.open)
                for end in range(window[1] + self.kind.slide_ns, last, self.kind.slide_ns):
                    self.open.setdefault((end - size_ns, end), [])
                yield from self.reach(watermark_ns)
                return

    @property
    def is_known(self) -> bool:
        """Whether anything is kept of the key."""
        if self.open or self.fired is None or not isinstance(self.kind, Ephemeral):
            return bool(self.open)
        return self.fired[1] + self.kind.keep_ns > self.watermark_ns

    def _take_range(self, kind: Ranges, mine: tuple[int, int, int]) -> Iterator[tuple[int, int, str]]:
        at_ns = mine[1]
        first = (at_ns - kind.offset_ns) // kind.slide_ns * kind.slide_ns + kind.offset_ns
        starts = range(first, at_ns - kind.size_ns, -kind.slide_ns)
        covering = [(start, start + kind.size_ns) for start in starts]
        alive = [each for each in covering if each[1] + kind.delay_ns > self.watermark_ns]
        if len(alive) < len(covering):
            self.partly_late += bool(alive)
        if not alive:
            self.lates.append(mine[2])
            if self.late == "fire":
                yield (*covering[0], str(mine[2]))
            if self.late == "oldest":
                end = self.watermark_ns - kind.delay_ns + 1
                while (end - kind.size_ns - kind.offset_ns) % kind.slide_ns:
                    end += 1
                alive = [(end - kind.size_ns, end)]
        for window in alive:
            self.open.setdefault(window, []).append(mine)

    def _take_ephemeral(self, kind: Ephemeral, mine: tuple[int, int, int]) -> Iterator[tuple[int, int, str]]:
        if self.fired is not None and self.fired[1] + kind.keep_ns > self.watermark_ns:
            self.lates.append(mine[2])
            if self.late == "fire":
                yield (*self.fired, str(mine[2]))
            return
        window = next(iter(self.open), (mine[1], mine[1] + kind.trigger_ns))
        if window[1] <= self.watermark_ns:
            self.lates.append(mine[2])
            if self.late == "fire":
                yield (*window, str(mine[2]))
            return
        self.open.setdefault(window, []).append(mine)

    def _take_session(self, kind: Sessions, mine: tuple[int, int, int]) -> Iterator[tuple[int, int, str]]:
        at_ns, gap_ns = mine[1], kind.gap_ns
        near = [
            window
            for window in self.open
            if window[0] - gap_ns <= at_ns <= window[1] - 1 and window[1] + kind.delay_ns > self.watermark_ns
        ]
        if not near and at_ns + gap_ns + 1 + kind.delay_ns <= self.watermark_ns:
            self.lates.append(mine[2])
            alive = [each for each in self.open if each[1] + kind.delay_ns > self.watermark_ns]
            if self.late == "oldest" and alive:
                self.open[min(alive)].append(mine)
            elif self.late == "fire":
                yield at_ns, at_ns + gap_ns + 1, str(mine[2])
            return
        start = min([at_ns, *(window[0] for window in near)])
        end = max([at_ns + gap_ns + 1, *(window[1] for window in near)])
        members = [each for window in near for each in self.open.pop(window)]
        self.open[start, end] = [*members, mine]


def shown(members: Sequence[tuple[int, int, int]]) -> str:
    """The values of a window's messages, sorted: which ones, not in which order."""
    return " ".join(str(each) for each in sorted(value for _, _, value in members))
