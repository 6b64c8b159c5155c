"""A subscriber: where it starts, and its own way through the log.

It reads with a reader of its own and applies the delivery rule with a table of its own, so a slow one slows no other,
and holds at most one round of records in memory, of which it makes responses as they are asked for.
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

# How long a reader waits for results before it checks whether its subscriber is still there.
_POLL_MS = 200
# Of a round: with the reader's limit on bytes, it bounds what a subscriber that stops reading holds in memory.
_RECORDS_MAX = 256
# Origins in one position: streams that lead to a sink (for dead letters, stages and destinations), and those of earlier
# versions of the application: far more than anybody writes. At 50 bytes each such a position has 50 kB.
_ORIGINS_MAX = 1024
# Responses are made until they have so many bytes together: a response may be several times its record.
_RESPONSES_BYTES_MAX = 256 * 1024
# What a reader holds beside what it reads ahead; see `LogReader`.
_READER_TIMES = 3


class SubscriptionRefusal(Enum):
    """Why a subscription is refused."""

    INVALID = auto()
    OUT_OF_RANGE = auto()


class RefusedSubscription(Exception):
    """A subscription that cannot be served as it was asked for."""

    def __init__(self, refusal: SubscriptionRefusal, text: str) -> None:
        super().__init__(text)
        self.refusal = refusal


@dataclass(frozen=True, slots=True)
class LogFacts:
    """Of each partition of a sink's log: where it begins and ends now."""

    beginnings: Mapping[int, int]
    ends: Mapping[int, int]


def starts(
    request: pb.SubscribeRequest, *, facts: LogFacts, newest: Mapping[int, DeliveryProgress]
) -> dict[int, DeliveryProgress]:
    """Where a subscription goes on, or starts, in each partition, in the order in which it opens. Raises Refused.

    `newest`: how far the receiver itself has delivered, with all that it has seen: that is where START_LATEST starts.

    Partitions above all that a request has positions of were added since (`bettong repartition`): the subscriber has
    seen none of their results. Below, its first opening was cut off. The two are told apart because that opening begins
    with the highest partition, and a later one adds partitions from below.
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
        found[position.partition] = _resumed(position, request.sink, facts)
    known = max(found, default=max(facts.beginnings, default=0))
    for partition in sorted(facts.beginnings.keys() - found.keys(), reverse=not found):
        latest = request.start == pb.START_LATEST and partition <= known
        beginning = facts.beginnings[partition]
        found[partition] = newest[partition] if latest else DeliveryProgress.fresh(beginning)
    return found


def _resumed(position: pb.Position, sink: str, facts: LogFacts) -> DeliveryProgress:
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


def held_ahead(ahead_bytes: int) -> int:
    """What a reader holds that reads so far ahead."""
    return _READER_TIMES * ahead_bytes


@dataclass(frozen=True, slots=True)
class OutgoingResponse:
    """A response as it goes over the wire, and where its partition stands after it."""

    data: bytes
    partition: int
    offset: int


class Subscription:
    """One subscriber's way through the log of a sink. Use it from one thread.

    `held`: bytes that it holds beside the responses that it has given away.
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
        """`open_reader(starts)` connects; what it raises passes through. It reads ahead `ahead_bytes_max`."""
        self._tracing = tracing
        self.held = held_ahead(ahead_bytes_max)
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
        """Where each partition starts, so that a subscriber that is cut off at once resumes at the same positions."""
        return [_outgoing(self._response(partition)) for partition in self._progress]

    def round(self) -> list[OutgoingResponse]:
        """The next results; [] when none came in time. Raises LogError; LogTruncatedError when the log was lost."""
        if found := self._made():
            return found
        records = self._reader.poll(_POLL_MS, _RECORDS_MAX)
        self.held = max(self.held, held_ahead(max((len(each.value) for each in records), default=0)))
        self._responses = self.responses(records)
        return self._made()

    def _made(self) -> list[OutgoingResponse]:
        """Some of the responses to the records that were read."""
        found: list[OutgoingResponse] = []
        size = 0
        while size < _RESPONSES_BYTES_MAX and (response := next(self._responses, None)) is not None:
            found.append(_outgoing(response))
            size += len(found[-1].data)
        return found

    def responses(self, records: Sequence[Record]) -> Iterator[pb.SubscribeResponse]:
        """The messages of records that are to be delivered, then the positions of partitions that only moved on."""
        silent: dict[int, None] = {}
        for record in records:
            response = self._response_to(record)
            if response is None:
                silent[record.partition] = None
            else:
                silent.pop(record.partition, None)
                yield response
        yield from (self._response(partition) for partition in silent)

    def handed(self, response: OutgoingResponse) -> None:
        """GRPC has taken a response. From any thread."""
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
        if not progress.takes(record.offset, frame) or frame is None:
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
