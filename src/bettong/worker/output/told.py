"""Which watermarks the partitions of the next stages know, and who is to be told by a TICK.

A frame tells its destination. A partition that gets none is told by a TICK, but only after a while without one, and
only when origins have brought the watermark further: one that moves on by the log clock alone, moves on there, too.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bettong.frames.frame import Frame, FrameKind, encode, tick_origin
from bettong.identifiers import Origin
from bettong.worker.output.framing import FrameDestination, OutputRecord

# Log clock. Less would cost more TICKs than the frames they stand for; more would delay windows of quiet partitions.
TICK_NS = 200_000_000


@dataclass(slots=True)
class Told:
    """The watermark that a destination was told last, and the log clock then."""

    watermark_ns: int = 0
    log_ns: int = 0


class ToldWatermarks:
    """Of the partitions of stages that need time. Part of a partition's state."""

    def __init__(self, destinations: Sequence[FrameDestination]) -> None:
        self._told = {destination: Told() for destination in destinations}
        # The log clock before which no TICK is due. Who is told since is due later, so it may be too low.
        self._not_before_ns = 0

    def note(self, to: FrameDestination, watermark_ns: int, log_ns: int) -> None:
        """A frame or a TICK tells it."""
        told = self._told[to]
        told.watermark_ns = max(told.watermark_ns, watermark_ns)
        told.log_ns = max(told.log_ns, log_ns)

    def due_ns(self, reached_ns: int) -> int | None:
        """The log clock at which somebody is to be told of that watermark; None: all know."""
        due = (each.log_ns for each in self._told.values() if each.watermark_ns < reached_ns)
        first = min(due, default=None)
        return None if first is None else first + TICK_NS

    def ticks(
        self, *, ingest_ns: int, log_ns: int, reached_ns: int, watermark_ns: int
    ) -> Iterator[OutputRecord]:
        """A TICK for everybody who is to be told by now. `ingest_ns`: of the record. `reached_ns`: see Watermarks."""
        if log_ns < self._not_before_ns:
            return
        for to, told in self._told.items():
            if told.watermark_ns < reached_ns and told.log_ns + TICK_NS <= log_ns:
                self.note(to, watermark_ns, log_ns)
                yield _tick(to, ingest_ns, watermark_ns)
        if reached_ns:
            self._not_before_ns = min(each.log_ns for each in self._told.values()) + TICK_NS

    def stored(self) -> Iterator[tuple[FrameDestination, Told]]:
        """Who was ever told."""
        return ((to, told) for to, told in self._told.items() if told.log_ns)

    def load(self, known: Iterable[tuple[Origin, int, Told]]) -> None:
        """Takes over what `stored` gave, by origin and partition, as far as there are such destinations now."""
        places: dict[tuple[str, int], FrameDestination] = {(to.origin, to.partition): to for to in self._told}
        for origin, partition, told in known:
            if (origin, partition) in places:
                self._told[places[origin, partition]] = told


def _tick(to: FrameDestination, ingest_ns: int, watermark_ns: int) -> OutputRecord:
    frame = Frame(
        origin=tick_origin(to.origin.partition("/")[0]),
        sequence=0,
        previous=0,
        kind=FrameKind.TICK,
        ingest_ns=ingest_ns,
        watermarks={to.origin: watermark_ns},
    )
    return OutputRecord(to.topic, to.partition, encode(frame), 0)
