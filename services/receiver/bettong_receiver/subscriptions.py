"""A subscription: where it starts, and how it reads the log.

It has its own reader and its own delivery table, so a slow one delays no other. It holds at most one round of records
in memory, and builds responses from them on demand.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import cast

from bettong.delivery import DeliveryTable
from bettong.edges.kafka_log import LogReader, Record
from bettong.errors import FrameError
from bettong.frames.frame import ORIGIN_CHARACTERS_MAX, Frame
from bettong.identifiers import Origin, SequenceNumber, TopicPartition
from bettong.traces import RecordPosition
from bettong.v1 import subscribe_pb2 as pb
from bettong_receiver.formats import SinkFormat, frame_of
from bettong_receiver.progress import DeliveryProgress
from bettong_receiver.tracing import SubscriberTracing

# How long a reader waits for results before it checks whether its subscriber is still connected.
_POLL_MS = 200
# Records per round: with the reader's limit on bytes, it bounds the memory of a subscriber that stops reading.
_RECORDS_MAX = 256
# Origins in one position: streams that lead to a sink (for dead letters, stages and destinations), and those of earlier
# versions of the application. Far more than any application has; at 50 bytes each such a position takes 50 kB.
_ORIGINS_MAX = 1024
# Bytes of the responses built at a time: a response may be several times the size of its record.
_RESPONSES_BYTES_MAX = 256 * 1024
# Memory of a reader as a multiple of the bytes that it reads ahead; see `LogReader`.
_READER_TIMES = 3


class SubscriptionRefusal(Enum):
    """Why a subscription is refused."""

    INVALID = auto()
    OUT_OF_RANGE = auto()


class RefusedSubscription(Exception):
    """The subscription request cannot be served."""

    def __init__(self, refusal: SubscriptionRefusal, text: str) -> None:
        super().__init__(text)
        self.refusal = refusal


@dataclass(frozen=True, slots=True)
class LogFacts:
    """The current first and end offsets of each partition of a sink's log."""

    beginnings: Mapping[int, int]
    ends: Mapping[int, int]


def starts(
    request: pb.SubscribeRequest, *, facts: LogFacts, newest: Mapping[int, DeliveryProgress]
) -> dict[int, DeliveryProgress]:
    """Where a subscription resumes or starts in each partition, in opening order. Raises RefusedSubscription.

    `newest`: the receiver's own progress, including its delivery table, where START_LATEST starts.

    Partitions above all that the request has positions for were added since (`bettong repartition`), so the subscriber
    has seen none of their results. A missing lower partition means that its first opening was interrupted. The cases
    differ because the first opening begins with the highest partition, and later ones append new partitions.
    """
    if request.start not in pb.Start.values():
        raise RefusedSubscription(
            SubscriptionRefusal.INVALID,
            f"start {request.start} is unknown; expected START_EARLIEST or START_LATEST",
        )
    found: dict[int, DeliveryProgress] = {}
    for position in request.positions:
        if position.partition in found:
            raise RefusedSubscription(
                SubscriptionRefusal.INVALID, f"two positions for partition {position.partition}; expected one"
            )
        found[position.partition] = _resume_from(position, request.sink, facts)
    known = max(found, default=max(facts.beginnings, default=0))
    for partition in sorted(facts.beginnings.keys() - found.keys(), reverse=not found):
        latest = request.start == pb.START_LATEST and partition <= known
        beginning = facts.beginnings[partition]
        found[partition] = newest[partition] if latest else DeliveryProgress.fresh(beginning)
    return found


def _resume_from(position: pb.Position, sink: str, facts: LogFacts) -> DeliveryProgress:
    where = f"position of partition {position.partition}"
    if position.partition not in facts.beginnings:
        raise RefusedSubscription(
            SubscriptionRefusal.INVALID,
            f"{where}: sink {sink!r} has partitions 0 to {len(facts.beginnings) - 1}",
        )
    if len(position.highest) > _ORIGINS_MAX:
        raise RefusedSubscription(
            SubscriptionRefusal.INVALID,
            f"{where}: {len(position.highest)} origins, a position has at most {_ORIGINS_MAX}; expected one that this"
            " service gave",
        )
    for origin in position.highest:
        parts = origin.split("/")
        if (
            len(parts) != 3
            or (parts[0], parts[2]) != (sink, str(position.partition))
            or len(origin) > ORIGIN_CHARACTERS_MAX
        ):
            raise RefusedSubscription(
                SubscriptionRefusal.INVALID,
                f"{where}: origin {origin[:100]!r} is not one of sink {sink!r}, which are"
                f" {sink}/STAGE/{position.partition}",
            )
    beginning, end = facts.beginnings[position.partition], facts.ends[position.partition]
    if not beginning <= position.offset <= end:
        raise RefusedSubscription(
            SubscriptionRefusal.OUT_OF_RANGE,
            f"{where}: offset {position.offset} is not in the log of sink {sink!r}, which has {beginning} to {end};"
            " subscribe without this position to start anew",
        )
    highest = {Origin(origin): SequenceNumber(sequence) for origin, sequence in position.highest.items()}
    return DeliveryProgress(position.offset, DeliveryTable.of(highest), adopts=beginning > 0)


def reader_bytes(ahead_bytes: int) -> int:
    """The memory of a reader that reads ahead `ahead_bytes`."""
    return _READER_TIMES * ahead_bytes


@dataclass(frozen=True, slots=True)
class OutgoingResponse:
    """A serialized response, and the next offset of its partition after it."""

    data: bytes
    partition: int
    offset: int


class Subscription:
    """Reads the log of a sink for one subscriber. Use it from one thread.

    `held`: bytes that it holds, without the responses that it has returned.
    """

    def __init__(
        self,
        sink_format: SinkFormat,
        progress: Mapping[int, DeliveryProgress],
        open_reader: Callable[[Mapping[TopicPartition, int]], LogReader],
        *,
        ahead_bytes_max: int,
        tracing: SubscriberTracing | None = None,
    ) -> None:
        """`open_reader(starts)` connects, and its errors propagate. It reads ahead `ahead_bytes_max`."""
        self._tracing = tracing
        self.held = reader_bytes(ahead_bytes_max)
        self._responses: Iterator[pb.SubscribeResponse] = iter(())
        self._format = sink_format
        self._progress = progress
        self._reader = open_reader(
            {
                TopicPartition(sink_format.topic, partition): each.offset
                for partition, each in progress.items()
            }
        )

    def opening(self) -> list[OutgoingResponse]:
        """The start positions, so that a subscriber whose connection breaks at once resumes from the same positions."""
        return [_outgoing(self._response(partition)) for partition in self._progress]

    def round(self) -> list[OutgoingResponse]:
        """The next results; [] if none arrive in time. Raises LogError; LogTruncatedError if the log was truncated."""
        if found := self._next_responses():
            return found
        records = self._reader.poll(_POLL_MS, _RECORDS_MAX)
        self.held = max(self.held, reader_bytes(max((len(each.value) for each in records), default=0)))
        self._responses = self.responses(records)
        return self._next_responses()

    def _next_responses(self) -> list[OutgoingResponse]:
        """Takes the next responses, up to the limit on bytes."""
        found: list[OutgoingResponse] = []
        size = 0
        while size < _RESPONSES_BYTES_MAX and (response := next(self._responses, None)) is not None:
            found.append(_outgoing(response))
            size += len(found[-1].data)
        return found

    def responses(self, records: Sequence[Record]) -> Iterator[pb.SubscribeResponse]:
        """Responses with the messages to deliver, then with the positions of partitions that moved without messages."""
        moved_only: dict[int, None] = {}
        for record in records:
            response = self._response_to(record)
            if response is None:
                moved_only[record.partition] = None
            else:
                moved_only.pop(record.partition, None)
                yield response
        yield from (self._response(partition) for partition in moved_only)

    def accepted(self, response: OutgoingResponse) -> None:
        """Call it when gRPC has accepted a response. From any thread."""
        if self._tracing is not None:
            self._tracing.delivered(response.partition, response.offset)

    def close(self) -> None:
        """Closes the reader of the log."""
        self._reader.close()

    def _response_to(self, record: Record) -> pb.SubscribeResponse | None:
        progress = self._progress[record.partition]
        try:
            frame = frame_of(self._format.sink, record.value)
        except FrameError:
            frame = None
        if not progress.advance(record.offset, frame) or frame is None:
            return None
        try:
            messages = self._format.messages(frame)
        except FrameError:
            return None
        if record.traceparent and self._tracing is not None:
            position = RecordPosition(record.topic, record.partition, record.offset)
            self._tracing.read(record.traceparent, position, len(messages))
        return self._response(record.partition, messages, frame)

    def _response(
        self, partition: int, messages: Iterable[bytes] = (), frame: Frame | None = None
    ) -> pb.SubscribeResponse:
        progress = self._progress[partition]
        highest = cast("Mapping[str, int]", progress.table.highest)  # an Origin is a str
        position = pb.Position(partition=partition, offset=progress.offset, highest=highest)
        return pb.SubscribeResponse(
            messages=messages, position=position, sent_ns=frame.sent_ns if frame is not None else 0
        )


def _outgoing(response: pb.SubscribeResponse) -> OutgoingResponse:
    return OutgoingResponse(
        response.SerializeToString(), response.position.partition, response.position.offset
    )
