"""Which watermarks the partitions of the next stages know, and which of them get a TICK.

A frame carries the watermark to its destination. A partition that gets no frame for a while gets a TICK, but only
when origins have brought the watermark further: one that moves on by the log clock alone, moves on there, too. It
gets to know it once, when no origin is live here any more, and waits for this one no longer.

A partition that never reported a watermark reports that it is idle, too, for all wait for it. It does so BEGIN_NS
after its first record, which may be a TICK for that purpose: so clients that begin to send when the application starts,
and reach all partitions, find no partition ahead that did not wait.
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
BEGIN_NS = 5_000_000_000


@dataclass(slots=True)
class DownstreamWatermark:
    """The watermark that a destination was sent last, the log clock then, and whether as that of an idle origin.

    Before it was ever sent one, the log clock of the first record here; 0 before that.
    """

    watermark_ns: int = 0
    log_ns: int = 0
    is_idle: bool = False

    def due_ns(self, of: Watermarks) -> int | None:
        """The log clock at which it is to get a TICK; None: it knows how it stands."""
        if self.watermark_ns < of.reached_ns:
            return self.log_ns + TICK_NS
        if of.is_live or self.is_idle:
            return None
        return self.log_ns + (TICK_NS if self.watermark_ns else BEGIN_NS)


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
        return min(
            (due for each in self._sent.values() if (due := each.due_ns(of)) is not None), default=None
        )

    def ticks(
        self, frame: Frame, log_ns: int, of: Watermarks, numbers: SentTable, generation: int
    ) -> Iterator[OutputRecord]:
        """The TICKs that are due with a record. `numbers`: of the frames that were sent. `generation`: see `Frame`."""
        if log_ns < self._not_before_ns:
            return
        for to, sent in self._sent.items():
            if not (of.reached_ns or of.is_live or sent.log_ns):
                sent.log_ns = log_ns
            due_ns = sent.due_ns(of)
            if due_ns is not None and due_ns <= log_ns:
                self.note(to, of.watermark_ns, log_ns)
                sent.is_idle = not of.is_live
                idle = {to.origin: numbers.last(to.origin, to.partition)} if sent.is_idle else None
                watermarks = {to.origin: of.watermark_ns}
                stream = stream_of(to.origin)
                value = tick_record(stream, frame.ingest_ns, watermarks, idle, generation=generation)
                yield OutputRecord(to.topic, to.partition, value, 0)
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
