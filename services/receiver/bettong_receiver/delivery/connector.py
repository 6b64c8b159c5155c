"""The interface that the delivery engine requires of connectors to files, Redis and external systems."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

from bettong.frames.frame import Frame
from bettong_receiver.errors import SinkError
from bettong_receiver.positions import PositionKey, encode
from bettong_receiver.progress import DeliveryProgress, SinkPartition

Message = TypeVar("Message")
# The messages refused in each partition: their index in its batch, and the reason.
Refused = Mapping[SinkPartition, Mapping[int, str]]
# Positions hold the reason of a refusal until its dead letter is written, so it must be short.
REASON_CHARACTERS_MAX = 300


class ConnectorUnavailableError(SinkError):
    """The destination is unavailable or busy: a retry may succeed later."""


class FrameMessages(NamedTuple, Generic[Message]):
    """The messages of one frame. `offset`: of its record in the log; `times`, `traceparent`: the record's headers."""

    offset: int
    frame: Frame
    messages: Sequence[Message]
    times: bytes = b""
    traceparent: bytes = b""


@dataclass(slots=True)
class MovingPosition:
    """The position of one connector in one partition, which advances with each round of deliveries."""

    key: PositionKey
    progress: DeliveryProgress

    def encode(self, *, length_bytes: int = 0) -> bytes:
        """The position to store. Between two calls of `deliver` it covers all messages delivered so far."""
        return encode(self.key, self.progress, length_bytes=length_bytes)


class SinkBatch(NamedTuple, Generic[Message]):
    """One delivery of one partition of a sink: its frames in order, and the position after them.

    `key`: sink and partition. When the destination refuses some messages for good, `refusing(reasons)`, by their index
    in `messages`, returns the position to store with the others. None: no message may be refused.
    """

    key: SinkPartition
    frames: Sequence[FrameMessages[Message]]
    moving: MovingPosition
    refusing: Callable[[Mapping[int, str]], bytes] | None = None

    @property
    def partition(self) -> int:
        """The sink's partition."""
        return self.key.partition

    @property
    def messages(self) -> list[Message]:
        """The messages of all frames, in order. A new list each time."""
        return [message for each in self.frames for message in each.messages]

    def position(self) -> bytes:
        """See `MovingPosition.encode`."""
        return self.moving.encode()


class SinkConnector(Protocol[Message]):
    """Stores the results of one or more sinks, and a position for each partition with them. Used from one thread.

    After any error the task closes it and opens another, whose positions show how far a failed delivery came.
    Every method raises ConnectorUnavailableError for transient errors, SinkError for those that need an operator;
    waits are bounded by a minute.
    """

    def open(self, beginnings: Mapping[SinkPartition, int]) -> dict[SinkPartition, bytes | None]:
        """Connects, checks the destination, fences off the previous connector and undoes its incomplete deliveries.

        Returns the last stored position of each partition of `beginnings`, None where there is none. `beginnings` holds
        the first offset of each partition's log now.
        """

    def deliver(self, batches: Sequence[SinkBatch[Message]]) -> Refused:
        """Stores messages and positions atomically, and only if no other connector was opened later.

        A position may be stored after its messages if the next `open` undoes messages without a position, or if the
        connector's name says that it delivers at least once. Returns the messages that the destination refused for
        good and that were left out; a connector that cannot tell them apart raises SinkError.
        """

    def flush(self) -> None:
        """Stores what `deliver` deferred, if it is due. Called after every round, so several times a second."""
        return

    def finish(self) -> None:
        """Stores what `deliver` deferred, now. Called once, at a clean stop."""
        return

    def close(self) -> None:
        """Releases all resources; the next `open` undoes what was not stored completely. Never raises."""
