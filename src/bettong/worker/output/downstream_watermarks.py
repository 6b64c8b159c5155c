"""The watermarks that were sent to the partitions of the next stages, and which of these are sent a TICK.

A frame carries the watermark to its destination. A partition that is sent no frame for a while is sent a TICK, but only
when origins have advanced the watermark: one that advances by the log clock alone advances there, too. When no origin
is live here any more, one idle TICK is sent, and the destination no longer waits for this partition.

A partition that never reported a watermark also reports that it is idle, because the next stages wait for it. It does
so BEGIN_NS after its first record, which may be a TICK for that purpose: so clients that begin to send when the
application starts, and reach all partitions, find none that has advanced without waiting for them.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bettong.frames.frame import Frame, tick_record
from bettong.identifiers import Origin, stream_of
from bettong.worker.output.framing import FrameDestination, OutputRecord
from bettong.worker.output.numbering import SentTable
from bettong.worker.watermarks import Watermarks

# By the log clock. Less would send more TICKs than the frames they replace; more would delay windows of quiet
# partitions.
TICK_NS = 200_000_000
BEGIN_NS = 5_000_000_000


@dataclass(slots=True)
class DownstreamWatermark:
    """The watermark last sent to a destination, the log clock then, and whether this origin was reported idle.

    Before the first one was sent, `log_ns` is the log clock of the first record here; 0 before that.
    """

    watermark_ns: int = 0
    log_ns: int = 0
    is_idle: bool = False

    def due_ns(self, of: Watermarks) -> int | None:
        """The log clock at which to send it a TICK; None: it is up to date."""
        if self.watermark_ns < of.reached_ns:
            return self.log_ns + TICK_NS
        if of.is_live or self.is_idle:
            return None
        return self.log_ns + (TICK_NS if self.watermark_ns else BEGIN_NS)


class DownstreamWatermarks:
    """The watermarks sent to the partitions of stages that need time. Part of a partition's state."""

    def __init__(self, destinations: Sequence[FrameDestination]) -> None:
        self._sent = {destination: DownstreamWatermark() for destination in destinations}
        # A lower bound of the log clock at which a TICK is due: what is sent later only raises it.
        self._not_before_ns = 0

    def note(self, to: FrameDestination, watermark_ns: int, log_ns: int) -> None:
        """Records that a frame or a TICK carries the watermark there."""
        sent = self._sent[to]
        sent.watermark_ns = max(sent.watermark_ns, watermark_ns)
        sent.log_ns = max(sent.log_ns, log_ns)
        sent.is_idle = False

    def due_ns(self, of: Watermarks) -> int | None:
        """The log clock at which a TICK is due; None: all destinations are up to date."""
        return min(
            (due for each in self._sent.values() if (due := each.due_ns(of)) is not None), default=None
        )

    def ticks(
        self, frame: Frame, log_ns: int, of: Watermarks, numbers: SentTable, generation: int
    ) -> Iterator[OutputRecord]:
        """The TICKs that are due with a record. `numbers`: of frames sent so far. `generation`: see `Frame`."""
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
        """The destinations that were ever sent a watermark."""
        return ((to, sent) for to, sent in self._sent.items() if sent.log_ns)

    def load(self, known: Iterable[tuple[Origin, int, DownstreamWatermark]]) -> None:
        """Restores what `stored` returned, by origin and partition, for the destinations that still exist."""
        destinations: dict[tuple[Origin, int], FrameDestination] = {
            (to.origin, to.partition): to for to in self._sent
        }
        for origin, partition, sent in known:
            if (origin, partition) in destinations:
                self._sent[destinations[origin, partition]] = sent
