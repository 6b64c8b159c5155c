"""Event time in one partition of a stage that needs it: moves its watermark, and passes it on to later stages."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from bettong.application.plan import Stage
from bettong.application.timers import NEVER
from bettong.delivery import DeliveryTable
from bettong.event_progress import InputProgress
from bettong.frames.frame import CLOCK_NS_MAX, Frame, FrameKind
from bettong.identifiers import Origin, partition_origin, producer_of
from bettong.v1 import snapshot_pb2
from bettong.worker.message_watermarks import MessageWatermarks, own_watermarks
from bettong.worker.output.downstream_watermarks import DownstreamWatermark, DownstreamWatermarks
from bettong.worker.output.framing import FrameDestination, OutputRecord
from bettong.worker.output.numbering import SentTable
from bettong.worker.watermarks import OriginClock, Watermarks


class EventClock:
    """The watermark, and what the next stages know of it. `destinations`: their partitions that need it.

    `partitions`: how many each stage has.
    """

    def __init__(self, stage: Stage, destinations: Sequence[FrameDestination], partitions: int) -> None:
        self._idle_ns = idle_times(stage)
        # The producers of earlier stages, whose partitions report when they are idle.
        before = [each for entry in stage.inputs if entry.event_time is None for each in entry.producers]
        awaited = [partition_origin(each, partition) for each in before for partition in range(partitions)]
        self._watermarks = Watermarks(self._idle_ns, awaited=awaited)
        self._has_destinations = bool(destinations)
        self._downstream = DownstreamWatermarks(destinations)

    @property
    def watermark_ns(self) -> int:
        """The watermark after the last record; 0 while it is unknown."""
        return self._watermarks.watermark_ns

    @property
    def slowest(self) -> Origin | None:
        """The live origin that holds the watermark back; None when none does."""
        return self._watermarks.slowest

    @property
    def inputs(self) -> tuple[InputProgress, ...]:
        """See Watermarks."""
        return self._watermarks.inputs

    def pass_time(self, log_ns: int) -> None:
        """Advances the log clock: an idle origin holds nothing back, and without a live origin the watermark advances.

        Each record does this first, so that a TICK before it would change nothing.
        """
        self._watermarks.pass_time(log_ns)

    def before_messages(self, frame: Frame, messages: int) -> MessageWatermarks:
        """The watermarks before the messages of a frame that is about to be folded.

        Raises FrameError where the frame carries watermarks for another number of messages.
        """
        own = own_watermarks(frame, messages)
        others_ns = CLOCK_NS_MAX if own is None else self._watermarks.others_ns(frame.origin)
        return MessageWatermarks(self.watermark_ns, own, others_ns)

    def reach(self, origin: Origin, own_ns: int) -> None:
        """Moves an origin's watermark within a record: the messages before that point are folded."""
        self._watermarks.reach(origin, own_ns)

    def pass_record(self, frame: Frame, delivery: DeliveryTable, *, is_taken: bool) -> None:
        """Moves the watermark after a record. `is_taken`: whether the delivery rule took its messages.

        `delivery`: the table after the record. TICKs of an origin that has ended are ignored until it opens again.
        """
        watermarks = self._watermarks
        if is_taken or frame.kind is FrameKind.OPEN:
            watermarks.reach(frame.origin, frame.watermark_ns)
        elif frame.kind is FrameKind.TICK:
            for origin, watermark_ns in frame.watermarks.items():
                if origin in frame.idle:
                    # In a replay it may be old: frames or watermarks of that origin have come since.
                    if delivery.highest.get(origin, frame.idle[origin]) == frame.idle[origin]:
                        watermarks.fall_idle(origin, watermark_ns)
                elif origin not in delivery.ended_ns:
                    watermarks.reach(origin, watermark_ns)
        elif frame.kind is FrameKind.END and self._removes_origin(frame.origin, delivery):
            watermarks.reach(frame.origin, frame.watermark_ns)
            watermarks.end(frame.origin)
        elif (
            frame.kind is not FrameKind.REFERENCE
        ):  # its origin is no producer here, but may have the name of a client's
            watermarks.hear(frame.origin)

    @staticmethod
    def _removes_origin(origin: Origin, delivery: DeliveryTable) -> bool:
        """Whether an END removes an origin: not if later frames have come, but also if only TICKs announced it."""
        return origin in delivery.ended_ns or origin not in delivery.highest

    def sends(self, watermark_ns: int, log_ns: int) -> Callable[[FrameDestination], None]:
        """Returns what notes that a frame to a destination carried that watermark."""
        return partial(self._downstream.note, watermark_ns=watermark_ns, log_ns=log_ns)

    def ticks(self, frame: Frame, log_ns: int, sent: SentTable, generation: int) -> Iterator[OutputRecord]:
        """The TICKs to send after a record's other output. `sent`: the sequences that were used before."""
        return (
            self._downstream.ticks(frame, log_ns, self._watermarks, sent, generation)
            if self._has_destinations
            else iter(())
        )

    def due_ns(self, log_ns: int, awaited_ns: int) -> int | None:
        """The log clock at which the watermark advances, or has to be passed on, although no record comes.

        `awaited_ns`: the watermark that something here waits for. While no origin is live the watermark advances
        steadily; then it is passed on only where frames go, for the next stage advances by itself.
        """
        found: list[int | None] = []
        if self._has_destinations:
            found.append(self._downstream.due_ns(self._watermarks))
        if self._has_destinations or awaited_ns != NEVER:
            found.append(self._watermarks.idle_ns)
        if awaited_ns != NEVER and self.watermark_ns and not self._watermarks.is_live:
            found.append(min(log_ns + awaited_ns - self.watermark_ns, CLOCK_NS_MAX))
        return min((each for each in found if each is not None), default=None)

    def stored(self) -> snapshot_pb2.EventClock:
        """The clock as a snapshot holds it."""
        stored = snapshot_pb2.EventClock(
            watermark_ns=self.watermark_ns, reached_ns=self._watermarks.reached_ns
        )
        for origin, clock in self._watermarks.origins:
            stored.origins.add(origin=origin, watermark_ns=clock.watermark_ns, heard_ns=clock.heard_ns)
        stored.awaited.extend(self._watermarks.awaited)
        for to, sent in self._downstream.stored():
            stored.downstream.add(
                origin=to.origin,
                partition=to.partition,
                watermark_ns=sent.watermark_ns,
                log_ns=sent.log_ns,
                idle=sent.is_idle,
            )
        return stored

    def load(self, stored: snapshot_pb2.EventClock, log_ns: int) -> None:
        """Restores what `stored` returned when the log clock was at `log_ns`."""
        self._watermarks = watermarks_of(stored, log_ns, self._idle_ns)
        self._downstream.load(
            (
                Origin(each.origin),
                each.partition,
                DownstreamWatermark(each.watermark_ns, each.log_ns, each.idle),
            )
            for each in stored.downstream
        )


def idle_times(stage: Stage) -> dict[str, int | None]:
    """By producer, how long an origin of a stage's inputs stays live without being heard from; None: for ever."""
    return {producer: entry.idle_timeout_ns for entry in stage.inputs for producer in entry.producers}


def watermarks_of(
    stored: snapshot_pb2.EventClock, log_ns: int, idle_ns: Mapping[str, int | None]
) -> Watermarks:
    """Restores the watermarks of a snapshot, saved when the log clock was at `log_ns`. `idle_ns`: see `Watermarks`."""
    return Watermarks(
        idle_ns,
        awaited=[origin for each in stored.awaited if producer_of(origin := Origin(each)) in idle_ns],
        log_ns=log_ns,
        watermark_ns=stored.watermark_ns,
        reached_ns=stored.reached_ns,
        origins={
            origin: OriginClock(each.watermark_ns, each.heard_ns)
            for each in stored.origins
            if producer_of(origin := Origin(each.origin)) in idle_ns
        },
    )
