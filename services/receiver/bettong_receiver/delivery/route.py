"""Which sinks go to which connectors, and their records, decoded for all connectors of a route. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic

from bettong.edges.kafka_log import Record
from bettong.errors import FrameError
from bettong.frames.frame import Frame
from bettong_receiver.delivery.connector import FrameMessages, Message, SinkConnector
from bettong_receiver.delivery.refusals import Refusals
from bettong_receiver.formats import frame_of
from bettong_receiver.progress import SinkPartition


@dataclass(frozen=True, slots=True)
class SinkInput(Generic[Message]):
    """One sink as connectors get it.

    `read` returns the messages of a frame, and raises FrameError for a frame of another sink. `refusals` is None if no
    connector refuses messages.
    """

    sink: str
    topic: str
    read: Callable[[Frame], Sequence[Message]]
    refusals: Refusals | None = None


@dataclass(frozen=True, slots=True)
class Route(Generic[Message]):
    """Sinks, and the connectors that get them. `name` is for log lines and spans.

    The connectors share one reader of the log, and frames are decoded once; a failure of one reopens all. Metrics
    describe the first. `required`: the receiver serves subscribers only once the route is open, and stops on an error
    that needs an operator. `fetch_bytes_max`: limit for reading ahead; see LogReader for the memory that this takes.
    """

    name: str
    inputs: Sequence[SinkInput[Message]]
    connectors: Sequence[Callable[[], SinkConnector[Message]]]
    fetch_bytes_max: int
    required: bool = False


class SinkRecord(Generic[Message]):
    """A record of a sink's log, decoded once for all connectors.

    `frame` is None when the record is no frame of the sink. `fault` says why the record or, once `content` was called,
    its content cannot be read; None when it can.
    """

    __slots__ = ("_content", "_sink_input", "fault", "frame", "key", "offset", "times", "traceparent")

    def __init__(self, sink_input: SinkInput[Message], record: Record) -> None:
        self.key = SinkPartition(sink_input.sink, record.partition)
        self.offset = record.offset
        self.times = record.times
        self.traceparent = record.traceparent
        self.frame: Frame | None = None
        self.fault: FrameError | None = None
        self._sink_input = sink_input
        self._content: FrameMessages[Message] | None = None
        try:
            self.frame = frame_of(sink_input.sink, record.value)
        except FrameError as error:
            self.fault = error

    def content(self) -> FrameMessages[Message] | None:
        """The messages of the frame; None when it does not belong to the sink."""
        if self._content is None and (frame := self.frame) is not None and self.fault is None:
            try:
                self._content = FrameMessages(
                    self.offset, frame, self._sink_input.read(frame), self.times, self.traceparent
                )
            except FrameError as error:
                self.fault = error
        return self._content
