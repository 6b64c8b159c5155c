"""The last day in ring buffers: a value per second for 5 minutes, one per 10 s for an hour, one per minute for a day.

Bounded by SERIES_MAX series of 2,100 values of 4 bytes and a header each: 4.5 MB. An unknown value is NaN, a hole. The
history of an earlier console is in Redis: see `kept_history`.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

SERIES_MAX = 512
# Well within the range of 4-byte floats.
_VALUE_MAX = 1e30
# Seconds by which an inspection may be late without a hole.
_LATE_S_MAX = 1


@dataclass(frozen=True, slots=True)
class Span:
    """A time span, by its name in addresses: `values` of `step_s` seconds each."""

    name: str
    step_s: int
    values: int


SPANS = {each.name: each for each in (Span("5m", 1, 300), Span("1h", 10, 360), Span("1d", 60, 1440))}


@dataclass(frozen=True, slots=True)
class HistoryStretch:
    """The values of a span: the time of the first one (Unix s), and by series a value for each step."""

    span: Span
    first_s: int
    values: Mapping[str, list[float | None]]


class History:
    """All series of an application. For one thread.

    A step of 10 s or a minute has the mean of a rate, and the maximum of other values: peaks are not averaged away.
    """

    def __init__(self) -> None:
        self._rings = {span.name: _Rings(span) for span in SPANS.values()}
        self.dropped = 0

    def add(self, time_s: float, values: Mapping[str, float | None], *, every_s: int = 1) -> None:
        """Adds values, and the interval of inspections: they count for the seconds since the previous one, too.

        Series beyond SERIES_MAX are not kept, and counted in `dropped`.
        """
        kept = dict(list(values.items())[:SERIES_MAX])
        self.dropped = max(self.dropped, len(values) - len(kept))
        for rings in self._rings.values():
            rings.add(time_s, kept, every_s)

    def names(self, span: Span) -> Collection[str]:
        """The names of the span's series."""
        return self._rings[span.name].names()

    def first_s(self, span: Span, now_s: float) -> int:
        """The time (Unix s) of the first value of the span up to now."""
        return self._rings[span.name].first(now_s) * span.step_s

    def stretch(self, span: Span, now_s: float, names: Collection[str] | None = None) -> HistoryStretch:
        """The span up to now: all series, or those of these names, which are some of `names`."""
        return self._rings[span.name].stretch(now_s, self.names(span) if names is None else names)

    def steps(self, span: Span, after: int, at_most: int) -> Iterator[tuple[int, Mapping[str, float]]]:
        """The newest steps after one, `at_most` of them, and their values; NaN for none."""
        return self._rings[span.name].steps(after, at_most)

    def restore(self, span: Span, now_s: float, found: Mapping[int, Mapping[str, float]]) -> None:
        """Fills in values of steps up to now where it has none of its own."""
        self._rings[span.name].restore(int(now_s) // span.step_s, found)


class _Rings:
    """The series of one span, as rings over one run of steps."""

    def __init__(self, span: Span) -> None:
        self._span = span
        self._rings: dict[str, array[float]] = {}
        self._counts: dict[str, int] = {}
        self._step = 0

    def add(self, time_s: float, values: Mapping[str, float | None], every_s: int) -> None:
        step = int(time_s) // self._span.step_s
        if step < self._step:
            return  # the clock was set back: existing values stay
        late = (
            range(self._step + 1, step)
            if 1 < step - self._step <= every_s + _LATE_S_MAX + 1 and self._span.step_s == 1
            else ()
        )
        self._pass_to(step)
        for name, value in values.items():
            if value is not None and abs(value) <= _VALUE_MAX:  # which NaN is not
                self._put(name, step, value, late)

    def names(self) -> Collection[str]:
        return self._rings.keys()

    def first(self, now_s: float) -> int:
        return max(self._step, int(now_s) // self._span.step_s) - self._span.values + 1

    def stretch(self, now_s: float, names: Collection[str]) -> HistoryStretch:
        first = self.first(now_s)
        steps = range(first, first + self._span.values)
        return HistoryStretch(
            self._span,
            first * self._span.step_s,
            {name: [self._at(self._rings[name], step) for step in steps] for name in names},
        )

    def steps(self, after: int, at_most: int) -> Iterator[tuple[int, Mapping[str, float]]]:
        for step in range(max(after + 1, self._step - at_most + 1), self._step + 1):
            position = step % self._span.values
            yield step, {name: ring[position] for name, ring in self._rings.items()}

    def restore(self, last: int, found: Mapping[int, Mapping[str, float]]) -> None:
        kept = {step: found[step] for step in found if last - self._span.values < step <= last}
        if not kept:
            return
        self._pass_to(max(self._step, *kept))
        for step, values in kept.items():
            position = step % self._span.values
            for name, value in values.items():
                ring = self._ring(name) if abs(value) <= _VALUE_MAX else None  # which NaN is not
                if ring is None or self._at(ring, step) is not None or step <= self._step - self._span.values:
                    continue
                ring[position] = value
                if step == self._step:
                    self._counts.setdefault(name, 1)

    def _at(self, ring: array[float], step: int) -> float | None:
        if not self._step - self._span.values < step <= self._step:
            return None
        value = ring[step % self._span.values]
        return None if math.isnan(value) else value

    def _pass_to(self, step: int) -> None:
        """Empties skipped steps, and forgets series that have no value left."""
        if step == self._step:
            return
        for passed in range(max(self._step + 1, step - self._span.values + 1), step + 1):
            for ring in self._rings.values():
                ring[passed % self._span.values] = math.nan
        self._step = step
        self._counts.clear()
        if step % self._span.values == 0:
            self._rings = {name: ring for name, ring in self._rings.items() if not all(map(math.isnan, ring))}

    def _ring(self, name: str) -> array[float] | None:
        """The ring of a series; None where there is no room until older series are empty."""
        ring = self._rings.get(name)
        if ring is None and len(self._rings) < SERIES_MAX:
            ring = self._rings[name] = array("f", [math.nan] * self._span.values)
        return ring

    def _put(self, name: str, step: int, value: float, late: Iterable[int]) -> None:
        ring = self._ring(name)
        if ring is None:
            return
        position = step % self._span.values
        count = self._counts[name] = self._counts.get(name, 0) + 1
        if count == 1:
            ring[position] = value
        elif name.endswith("_per_s"):
            ring[position] += (value - ring[position]) / count
        else:
            ring[position] = max(ring[position], value)
        for each in late:
            ring[each % self._span.values] = value
