"""Which watermarks the partitions of the next stages know, and which of them get a TICK.

A frame carries the watermark to its destination. A partition that gets no frame for a while gets a TICK, but only
when origins have brought the watermark further: one that moves on by the log clock alone, moves on there, too. It
gets to know it once, when no origin is live here any more, and waits for this one no longer.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bettong.frames.frame import Frame, tick_record
from bettong.identifiers import Origin, stream_of
from bettong.worker.output.framing import FrameDestination, OutputRecord
from bettong.worker.output.numbering import SentTable
from bettong.worker.watermarks import Watermarks

# Log clock. Less would cost more TICKs than the frames they stand for; more would delay windows of quiet partitions.
TICK_NS = 200_000_000


@dataclass(slots=True)
class DownstreamWatermark:
    """The watermark that a destination was sent last, the log clock then, and whether as that of an idle origin."""

    watermark_ns: int = 0
    log_ns: int = 0
    is_idle: bool = False


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
        sent.is_idle = False

    def due_ns(self, of: Watermarks) -> int | None:
        """The log clock at which a TICK is due; None: all destinations know how it stands."""
        first = min((each.log_ns for each in self._sent.values() if _needs_tick(each, of)), default=None)
        return None if first is None else first + TICK_NS

    def ticks(self, frame: Frame, log_ns: int, of: Watermarks, numbers: SentTable) -> Iterator[OutputRecord]:
        """The TICKs that are due with a record. `numbers`: of the frames that were sent."""
        if log_ns < self._not_before_ns:
            return
        for to, sent in self._sent.items():
            if sent.log_ns + TICK_NS <= log_ns and _needs_tick(sent, of):
                self.note(to, of.watermark_ns, log_ns)
                sent.is_idle = not of.is_live
                idle = {to.origin: numbers.last(to.origin, to.partition)} if sent.is_idle else None
                watermarks = {to.origin: of.watermark_ns}
                yield OutputRecord(
                    to.topic,
                    to.partition,
                    tick_record(stream_of(to.origin), frame.ingest_ns, watermarks, idle),
                    0,
                )
        if of.reached_ns:
            self._not_before_ns = min(each.log_ns for each in self._sent.values()) + TICK_NS

    def stored(self) -> Iterator[tuple[FrameDestination, DownstreamWatermark]]:
        """Those that were ever sent one."""
        return ((to, sent) for to, sent in self._sent.items() if sent.log_ns)

    def load(self, known: Iterable[tuple[Origin, int, DownstreamWatermark]]) -> None:
        """Takes over what `stored` gave, by origin and partition, as far as there are such destinations now."""
        destinations: dict[tuple[Origin, int], FrameDestination] = {
            (to.origin, to.partition): to for to in self._sent
        }
        for origin, partition, sent in known:
            if (origin, partition) in destinations:
                self._sent[destinations[origin, partition]] = sent


def _needs_tick(sent: DownstreamWatermark, of: Watermarks) -> bool:
    """Whether a destination does not know the watermark that origins have brought, or waits for it in vain."""
    return sent.watermark_ns < of.reached_ns or (not of.is_live and sent.log_ns > 0 and not sent.is_idle)
