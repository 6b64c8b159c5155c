"""The seam of connectors: what the delivery engine needs of files, Redis, an external system."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

from bettong.frames.frame import Frame
from bettong_receiver.errors import SinkError
from bettong_receiver.positions import PositionKey, encode
from bettong_receiver.progress import DeliveryProgress, SinkPartition

Message = TypeVar("Message")
# Of each partition the indexes in its batch of the messages that were refused, and why.
Refused = Mapping[SinkPartition, Mapping[int, str]]
# Why a message was refused is kept in positions until its dead letter is written: a line, not a page.
REASON_CHARACTERS_MAX = 300


class ConnectorUnavailableError(SinkError):
    """The destination is away or busy: the same may go well in a while."""


class FrameMessages(NamedTuple, Generic[Message]):
    """The messages of one frame. `offset`: its record in the log; `times`, `traceparent`: what lies beside it there."""

    offset: int
    frame: Frame
    messages: Sequence[Message]
    times: bytes = b""
    traceparent: bytes = b""


@dataclass(slots=True)
class MovingPosition:
    """The position of one connector in one partition, which moves on with each round of deliveries."""

    key: PositionKey
    progress: DeliveryProgress

    def encode(self, *, length_bytes: int = 0) -> bytes:
        """The position to store. Between two calls of `deliver` it covers all that was delivered by then."""
        return encode(self.key, self.progress, length_bytes=length_bytes)


class SinkBatch(NamedTuple, Generic[Message]):
    """What one partition of a sink gets in one delivery: its frames in order, and the position behind them.

    `key`: sink and partition. Where some messages are refused for good, `refusing(reasons)`, by the index of each in
    `messages`, gives the position to store with the others. None: all or nothing.
    """

    key: SinkPartition
    frames: Sequence[FrameMessages[Message]]
    moving: MovingPosition
    refusing: Callable[[Mapping[int, str]], bytes] | None = None

    @property
    def partition(self) -> int:
        """Of the sink."""
        return self.key.partition

    @property
    def messages(self) -> list[Message]:
        """Those of all frames, in order. A new list each time."""
        return [message for each in self.frames for message in each.messages]

    def position(self) -> bytes:
        """See `MovingPosition.encode`."""
        return self.moving.encode()


class SinkConnector(Protocol[Message]):
    """Stores the results of one or more sinks, and with them a position for each partition. Used from one thread.

    After any error the task closes it and opens another one, whose positions show what a failed delivery did.
    Every method raises ConnectorUnavailableError for what passes by itself, SinkError for what somebody must mend;
    waits are bounded by a minute.
    """

    def open(self, beginnings: Mapping[SinkPartition, int]) -> dict[SinkPartition, bytes | None]:
        """Connects, checks what can be checked, shuts out whoever delivered before, undoes what that left open.

        Then the position stored last for each partition of `beginnings`, which says where its log begins now; None
        where there was none.
        """

    def deliver(self, batches: Sequence[SinkBatch[Message]]) -> Refused:
        """Stores messages and positions, all or nothing, and only while nobody opened later.

        A position may be stored later than its messages where the next `open` undoes messages without a position, or
        where the connector's name says that messages come at least once. Returns what the destination refused for good,
        which is left out; a connector that does not know raises SinkError.
        """

    def flush(self) -> None:
        """Stores what `deliver` put off, if it is time to. Called after every round, so some times a second."""
        return

    def finish(self) -> None:
        """Stores what `deliver` put off, now. Called once, at a clean stop."""
        return

    def close(self) -> None:
        """Releases everything; what was not stored is undone by the next `open`. Never raises."""
