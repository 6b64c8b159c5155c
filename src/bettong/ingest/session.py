"""A session: one client's frames in, records of the log out. Pure; clocks are passed in.

    hello        -> OPEN to one partition of the stage; to each, where the stage needs event time
    frame 7      -> one DATA record for each partition that its keys touch       origin  <source>/<stream>
                    (and, if messages were refused, for the partition of the     sequence 7, previous: see Numbering
                    origin: its record holds them, beside columns or alone)
                    OPEN before it, to a partition that is not open
    end          -> END to each partition that knows the origin, when the stream gets no more frames

A resend yields the same partitions, the same order in them and the same refused messages, for these depend on the
frame's contents, number and origin alone. So a consumer can recognize a duplicate by its number. (A message refused as
too far ahead of the clock may be accepted the next time: see `dividing`. And watermarks, those before messages too, are
the session's: a new session knows less than the one before it. The first copy in the log counts.)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from bettong.application.nodes.source import Source
from bettong.application.on_error import SKIP, STOP
from bettong.frames.dead_letter_id import DeadLetterId
from bettong.frames.frame import Frame, FrameKind, encode
from bettong.frames.refused import Refused, pack, reason_text
from bettong.frames.times import TIME_BYTES
from bettong.identifiers import Origin, SequenceNumber
from bettong.ingest.body import read_body, read_rows_without
from bettong.ingest.care import Care
from bettong.ingest.dividing import Division, divide
from bettong.ingest.numbering import DISTANCE_MAX, Numbering
from bettong.ingest.refusal import Refusal, exhausted, invalid, unavailable
from bettong.ingest.requests import ROW_BYTES_MAX, check_count, check_sent, check_sequence, check_stream
from bettong.routing import partition_of
from bettong.v1.frame_pb2 import RefusedMessages
from bettong.v1.ingest_pb2 import Hello, IngestFrame

# The partition for marks that dead letters were sent again: few records, which are read together.
MARKS_PARTITION = 0
# Of a record that the delivery rule does not apply to.
NO_PARTITION = -1

# See `SenderSettings.frame_messages_max`.
FRAME_MESSAGES_MAX = 65_536


@dataclass(frozen=True, slots=True)
class SourceRoute:
    """Where the frames of a source go, and how large clients' frames may be.

    `needs_time`, `judges_lateness`, `needs_each_watermark`: see `Stage`. With `judges_lateness`, a message may take 8
    bytes more in its record: so `frame_messages_max` is at most an eighth of `frame_bytes_max` (`messages_that_fit`).
    """

    source: Source
    stage_topic: str
    dead_letter_topic: str
    partitions: int
    frame_bytes_max: int
    frame_messages_max: int = FRAME_MESSAGES_MAX
    needs_time: bool = False
    judges_lateness: bool = False
    needs_each_watermark: bool = False


def messages_that_fit(frame_bytes_max: int) -> int:
    """How many messages a frame may have if its record holds their watermarks: these take at most as much as a frame.

    A record has room for three frames: see `Session._shares`.
    """
    return frame_bytes_max // TIME_BYTES


@dataclass(frozen=True, slots=True)
class Append:
    """A record to append. `numbered_in` (its partition, or NO_PARTITION) and `opens` are for `Session.answered`."""

    topic: str
    partition: int
    value: bytes
    numbered_in: int
    opens: bool = False


@dataclass(frozen=True, slots=True)
class Taken:
    """The outcome of a frame: `appends` in this order. `refused` become dead letters; `skipped` are only counted.

    `watermark_ns`: that of its records.
    """

    appends: list[Append]
    messages: int = 0
    refused: tuple[Refused, ...] = ()
    skipped: int = 0
    watermark_ns: int = 0


@dataclass(frozen=True, slots=True)
class Shares:
    """A frame that was read. `parts`: partition, message count and columns. `packed`: refused messages by partition.

    `highest_ns`, `watermarks`: see `Division`.
    """

    frame: IngestFrame
    parts: Sequence[tuple[int, int, bytes | None]] = ()
    packed: Mapping[int, RefusedMessages] = field(default_factory=dict)
    messages: int = 0
    refused: tuple[Refused, ...] = ()
    skipped: int = 0
    highest_ns: int = 0
    watermarks: Mapping[int, bytes] = field(default_factory=dict)


class Session:
    """The splitting and numbering of one client stream. Calls come one after the other, in the stream's order."""

    def __init__(self, route: SourceRoute, hello: Hello, ends: list[int], *, generation: int = 0) -> None:
        """`ends`: see Numbering; one for each partition. Sessions of one stage share it. `generation`: see the proto.

        Raises Refusal (INVALID_ARGUMENT) for an invalid name of the stream.
        """
        check_stream(hello.source, hello.stream)
        self.origin = Origin(f"{route.source.name}/{hello.stream}")
        self.generation = generation
        self._route = route
        self._schema = route.source.schema.fingerprint
        self.claimed = SequenceNumber(hello.acknowledged)
        self._ends = ends
        # The partition of the first OPEN and of refused messages: always the same, so dead letters keep their order.
        self._home = partition_of(self.origin, route.partitions)
        self._dead_letter = DeadLetterId.of_stream(hello.stream)
        self._begin(self.claimed)

    def open(self, now_s: float, now_ns: int, durable: SequenceNumber) -> Taken:
        """The records that start the session; nothing may be acknowledged before all of them are durable.

        `durable`: frames of the stream up to this are known to be in the log. A higher number that the client claims is
        ignored, for it is not needed: its first frame follows on whatever the log holds of the stream.
        `now_s` is of a monotonic clock, `now_ns` the log's.
        """
        self._begin(durable)
        # A partition's watermark waits only for origins that it knows: else records of another origin close windows
        # there before this one's first frame arrives.
        opened = range(self._route.partitions) if self._route.needs_time else (self._home,)
        return Taken([*(self._open(each, now_s, now_ns) for each in opened), *self._sent_again_marks(now_ns)])

    def take(
        self,
        frame: IngestFrame,
        now_s: float,
        now_ns: int,
        oversized: Mapping[int, str] = MappingProxyType({}),
    ) -> Taken:
        """The records that a frame leads to: `read`, then `number`."""
        return self.number(self.read(frame, now_ns, oversized), now_s, now_ns)

    def read(
        self,
        frame: IngestFrame,
        now_ns: int,
        oversized: Mapping[int, str] = MappingProxyType({}),
        care: Care | None = None,
    ) -> Shares:
        """Reads and divides a frame, without numbers. Runs the user's decoder, key function and event time function.

        `now_ns`: the log's clock, or earlier, to which event times are compared. `oversized`: by index, why rows larger
        than a frame are refused unread; the frame's limit is for the others. `care`: for a frame during which a sender
        crashed. Raises Refusal when the frame breaks the contract; the session is over then.
        """
        self._check(frame, without=sum(len(frame.rows.messages[index]) for index in oversized))
        self._sequence = SequenceNumber(frame.sequence)
        if frame.sequence <= self._durable:
            return Shares(frame)
        source = self._route.source
        if care is not None:
            oversized = {**oversized, **self._refused_unread(frame, care)}
        touch = care.mark if care is not None else None
        read = (
            read_rows_without(source, frame, oversized, touch)
            if oversized
            else read_body(source, frame, touch)
        )
        if frame.WhichOneof("body") == "columns":
            most = self._route.frame_messages_max
            check_count(read.columns.length, self._sequence, self.origin, messages_max=most)
        division = divide(
            source,
            read,
            self._route.partitions,
            home=self._home,
            frame=f"{self.origin}/{frame.sequence}",
            care=care,
            now_ns=now_ns if self._route.needs_time else None,
            highest_ns=self._highest_ns if self._route.judges_lateness else None,
            needs_each_watermark=self._route.needs_each_watermark,
        )
        return self._shares(frame, division)

    def number(self, shares: Shares, now_s: float, now_ns: int) -> Taken:
        """Numbers the frame that was read last, and returns its records. The clocks are those of `open`."""
        frame = shares.frame
        self._advance_event_time(shares, now_ns)
        watermark_ns = self._watermark_ns
        appends: list[Append] = []
        sequence = SequenceNumber(frame.sequence)
        for partition, count, columns in shares.parts:
            if self._numbering.must_open(partition, now_s):
                appends.append(self._open(partition, now_s, now_ns))
            data = Frame(
                origin=self.origin,
                sequence=sequence,
                previous=self._numbering.number(partition, sequence, now_s),
                count=count,
                schema=self._schema if columns is not None else 0,
                ingest_ns=now_ns,
                sent_ns=frame.sent_ns or now_ns,
                watermark_ns=watermark_ns,
                columns=columns,
                refused=shares.packed.get(partition),
                message_watermarks=shares.watermarks.get(partition, b""),
                generation=self.generation,
            )
            appends.append(self._append(partition, data))
        return Taken(appends, shares.messages, shares.refused, shares.skipped, watermark_ns)

    def end(self, now_s: float, now_ns: int, *, kept: bool = False) -> Taken:
        """The records that end the stream; all its frames must be acknowledged, and no new ones may follow.

        `kept`: the same frames may come again. Where the stage needs event time, the records go to all of its
        partitions: these may know the origin by TICKs, or by an earlier session.
        """
        del now_s
        known = self._numbering.last_sent(everywhere=self._route.needs_time)
        return Taken(
            [self._mark(partition, last, FrameKind.END, now_ns, kept=kept) for partition, last in known]
        )

    def sent_s(self, partition: int) -> float:
        """When a record was sent there last, by the clock of `open`; 0 when none was."""
        return self._numbering.sent_s(partition)

    def answered(self, partition: int, offset: int, *, opens: bool) -> None:
        """Notes that a record lies at `offset`; from any one thread, in the order of the records of a partition.

        Raises Refusal (UNAVAILABLE) when consumers may skip the record as a gap: its frame must get no receipt.
        """
        if partition != NO_PARTITION and not self._numbering.answered(partition, offset, opens=opens):
            raise unavailable(
                f"a frame of {self.origin!r} was appended more than {DISTANCE_MAX} records after the one before it,"
                " or not after it (its topic was made anew), so it may not count; connect again and resend what has no"
                " receipt"
            )

    def lost(self, partition: int) -> None:
        """Notes that appending a record failed, as far as is known."""
        if partition != NO_PARTITION:
            self._numbering.lost(partition)

    def _begin(self, durable: SequenceNumber) -> None:
        self._durable = durable
        self._sequence = self.claimed
        self._highest_ns = 0  # of the event times of this session's messages
        self._numbering = Numbering(self._ends, acknowledged=durable)

    def _refused_unread(self, frame: IngestFrame, care: Care) -> dict[int, str]:
        """The rows that are refused unread, and why. Not of columns: only key and event time functions see their rows,
        and a row at which one of these crashed a sender is refused where the function is called.
        """
        if frame.WhichOneof("body") == "columns":
            return {}
        reasons = ((index, care.reason(index)) for index in range(len(frame.rows.messages)))
        return {index: reason for index, reason in reasons if reason is not None}

    def _check(self, frame: IngestFrame, *, without: int) -> None:
        if frame.sequence <= self._sequence:
            raise invalid(
                f"frame {frame.sequence} of {self.origin!r}: sequences grow, and the last one was {self._sequence};"
                " resend only frames above Hello.acknowledged, in their order"
            )
        check_sequence(SequenceNumber(frame.sequence), self.origin)
        check_sent(frame, self.origin)
        most = self._route.frame_bytes_max
        if frame.WhichOneof("body") == "columns":
            size = len(frame.columns)
        else:
            rows = frame.rows.messages
            size = sum(map(len, rows)) + ROW_BYTES_MAX * len(rows) - without
            if size > most:  # protobuf writes the frame to know, which takes ten times as long
                size = frame.rows.ByteSize() - without
        if size > most:
            raise self._too_large(SequenceNumber(frame.sequence), f"has {size} bytes")

    def _apply_on_error(
        self, sequence: SequenceNumber, refused: tuple[Refused, ...]
    ) -> tuple[tuple[Refused, ...], int]:
        """Of refused messages those that become dead letters, and how many are skipped, by the source's `on_error`.

        Raises Refusal (INVALID_ARGUMENT) for the whole frame if that is "stop".
        """
        on_error = self._route.source.on_error
        if refused and on_error == STOP:
            first = refused[0]
            raise invalid(
                f"frame {sequence} of {self.origin!r}, message {first.index}: {reason_text(first.reason)};"
                f' {len(refused)} message(s) refused, and with them the frame, for the source has on_error="stop":'
                " correct them, and send the frame again"
            )
        return ((), len(refused)) if on_error == SKIP else (refused, 0)

    def _too_large(self, sequence: SequenceNumber, what: str) -> Refusal:
        return exhausted(
            f"frame {sequence} of {self.origin!r} {what}, at most {self._route.frame_bytes_max} are taken"
            " (BETTONG_FRAME_BYTES_MAX); send fewer messages a frame"
        )

    def _shares(self, frame: IngestFrame, division: Division) -> Shares:
        sequence = SequenceNumber(frame.sequence)
        refused, skipped = self._apply_on_error(sequence, division.all_refused)
        most = self._route.frame_bytes_max
        # Whether messages have watermarks or not: what a resend packs must not depend on that.
        row_bytes = TIME_BYTES if self._route.judges_lateness else 0
        beside = {partition: count * row_bytes for partition, count, _ in division.shares}
        packed = (
            {
                partition: pack(each, frame_bytes_max=most, beside=beside.get(partition, 0))
                for partition, each in division.refused.items()
            }
            if refused
            else {}
        )
        for _, _, columns in division.shares:
            if len(columns) > most:
                raise self._too_large(sequence, f"becomes {len(columns)} bytes as columns")
        touched = {partition for partition, _, _ in division.shares}
        alone = [(partition, 0, None) for partition in sorted(packed.keys() - touched)]
        parts = [*division.shares, *alone]
        return Shares(
            frame,
            parts,
            packed,
            division.messages,
            refused,
            skipped,
            division.highest_ns,
            division.watermarks,
        )

    @property
    def _watermark_ns(self) -> int:
        """That of the session's frames so far; 0 while it is unknown, and where the stage does not need it."""
        return max(0, self._highest_ns - self._route.source.event_time.out_of_order_ns)

    def _advance_event_time(self, shares: Shares, now_ns: int) -> None:
        if self._route.needs_time and any(count for _, count, _ in shares.parts):
            by_clock = self._route.source.event_time.of is None
            self._highest_ns = max(self._highest_ns, now_ns if by_clock else shares.highest_ns)

    def _open(self, partition: int, now_s: float, now_ns: int) -> Append:
        return self._mark(partition, self._numbering.open(partition, now_s), FrameKind.OPEN, now_ns)

    def _mark(
        self, partition: int, last: SequenceNumber, kind: FrameKind, now_ns: int, *, kept: bool = False
    ) -> Append:
        return self._append(
            partition,
            Frame(
                origin=self.origin,
                sequence=last,
                previous=last,
                kind=kind,
                ingest_ns=now_ns,
                watermark_ns=self._watermark_ns if kind is FrameKind.END else 0,
                generation=self.generation,
                kept=kept,
            ),
        )

    def _sent_again_marks(self, now_ns: int) -> list[Append]:
        """Of a stream that sends a dead letter again: the record that marks in the dead letter topic how far it is."""
        if self._dead_letter is None:
            return []
        durable = self._durable
        mark = Frame(
            origin=self.origin,
            sequence=durable,
            previous=durable,
            kind=FrameKind.SENT_AGAIN,
            ingest_ns=now_ns,
        )
        return [Append(self._route.dead_letter_topic, MARKS_PARTITION, encode(mark), NO_PARTITION)]

    def _append(self, partition: int, frame: Frame) -> Append:
        return Append(
            self._route.stage_topic, partition, encode(frame), partition, frame.kind is not FrameKind.DATA
        )
