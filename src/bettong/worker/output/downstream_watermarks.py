"""Which watermarks the partitions of the next stages know, and which of them get a TICK.

A frame carries the watermark to its destination. A partition that gets no frame for a while gets a TICK, but only
when origins have brought the watermark further: one that moves on by the log clock alone, moves on there, too.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bettong.frames.frame import Frame, FrameKind, encode, tick_origin
from bettong.identifiers import Origin
from bettong.worker.output.framing import FrameDestination, OutputRecord

# Log clock. Less would cost more TICKs than the frames they stand for; more would delay windows of quiet partitions.
TICK_NS = 200_000_000


@dataclass(slots=True)
class DownstreamWatermark:
    """The watermark that a destination was sent last, and the log clock then."""

    watermark_ns: int = 0
    log_ns: int = 0


class DownstreamWatermarks:
    """Of the partitions of stages that need time. Part of a partition's state."""

    def __init__(self, destinations: Sequence[FrameDestination]) -> None:
        self._sent = {destination: DownstreamWatermark() for destination in destinations}
        # The log clock before which no TICK is due. What is sent since makes it later, so it may be too low.
        self._not_before_ns = 0

    def note(self, to: FrameDestination, watermark_ns: int, log_ns: int) -> None:
        """A frame or a TICK carries it there."""
        sent = self._sent[to]
        sent.watermark_ns = max(sent.watermark_ns, watermark_ns)
        sent.log_ns = max(sent.log_ns, log_ns)

    def due_ns(self, reached_ns: int) -> int | None:
        """The log clock at which a TICK with that watermark is due; None: all destinations have it."""
        due = (each.log_ns for each in self._sent.values() if each.watermark_ns < reached_ns)
        first = min(due, default=None)
        return None if first is None else first + TICK_NS

    def ticks(
        self, *, ingest_ns: int, log_ns: int, reached_ns: int, watermark_ns: int
    ) -> Iterator[OutputRecord]:
        """The TICKs that are due. `ingest_ns`: of the record. `reached_ns`: see Watermarks."""
        if log_ns < self._not_before_ns:
            return
        for to, sent in self._sent.items():
            if sent.watermark_ns < reached_ns and sent.log_ns + TICK_NS <= log_ns:
                self.note(to, watermark_ns, log_ns)
                yield _tick(to, ingest_ns, watermark_ns)
        if reached_ns:
            self._not_before_ns = min(each.log_ns for each in self._sent.values()) + TICK_NS

    def stored(self) -> Iterator[tuple[FrameDestination, DownstreamWatermark]]:
        """Those that were ever sent one."""
        return ((to, sent) for to, sent in self._sent.items() if sent.log_ns)

    def load(self, known: Iterable[tuple[Origin, int, DownstreamWatermark]]) -> None:
        """Takes over what `stored` gave, by origin and partition, as far as there are such destinations now."""
        places: dict[tuple[str, int], FrameDestination] = {(to.origin, to.partition): to for to in self._sent}
        for origin, partition, sent in known:
            if (origin, partition) in places:
                self._sent[places[origin, partition]] = sent


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
