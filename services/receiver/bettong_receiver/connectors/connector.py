"""What a task needs of a foreign system."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from bettong_receiver.errors import SinkError

Message = TypeVar("Message")
# Of each partition the places in its batch of the messages that were refused, and why.
Refused = Mapping[int, Mapping[int, str]]
# Why a message was refused is kept in positions until its dead letter is written: a line, not a page.
REASON_CHARACTERS_MAX = 300


class ConnectorUnavailableError(SinkError):
    """The foreign system is away or busy: the same may go well in a while."""


@dataclass(frozen=True, slots=True)
class SinkBatch(Generic[Message]):
    """What one partition of the sink gets in one delivery. `offset`: the record of the log that follows it.

    `position` is stored with the messages. Where some of them are refused for good, `refusing(places)`, with the reason
    for each place in `messages`, gives the position to be stored with the others. None: all or nothing.
    """

    partition: int
    messages: list[Message]
    offset: int
    position: bytes
    refusing: Callable[[Mapping[int, str]], bytes] | None = None


class SinkConnector(Protocol[Message]):
    """A connection to a foreign system that keeps a position for each partition with the data. Used from one thread.

    After any error it is closed and another one is opened: what a failed delivery did is told by the positions then.
    Every method raises ConnectorUnavailableError for what passes by itself, SinkError for what somebody must mend;
    waits are bounded by a minute.
    """

    def open(self, partitions: Sequence[int]) -> dict[int, bytes | None]:
        """Connects, checks what can be checked, shuts out whoever delivered before, undoes what that left open.

        Then the position stored with the last delivery of each partition; None where there was none.
        """

    def deliver(self, batches: Sequence[SinkBatch[Message]]) -> Refused:
        """Stores messages and positions. Exactly-once connectors: all or nothing, and only while nobody opened later.

        Returns what the system refused for good, which is left out; a connector that cannot tell raises SinkError.
        """

    def close(self) -> None:
        """Lets go; what was not delivered is undone. Never raises."""
