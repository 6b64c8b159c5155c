"""The interface of sources to external systems that they read."""

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

from bettong.application.external.connection import check_connection
from bettong.errors import ApplicationError

Start = Literal["earliest", "latest"]
OnLost = Literal["stop", "skip"]


class Transport(ABC):
    """The value of `from_=` of a source: partitions of records with increasing offsets, no connection or secret.

    `kind` is the name of the sender's module that reads it: `bettong_sender.readers.{kind}`.
    """

    __slots__ = ()

    kind: ClassVar[str]

    @property
    @abstractmethod
    def connection(self) -> str | None:
        """The entry of BETTONG_CONNECTIONS; None: that of the source's name."""

    @property
    @abstractmethod
    def title(self) -> str:
        """A text that names what is read: `topic trades`."""

    @property
    @abstractmethod
    def stream_prefix(self) -> str:
        """The prefix of its streams' names, which no other transport uses. It never changes: the log holds it."""

    @property
    @abstractmethod
    def start(self) -> Start:
        """Where reading begins the first time."""

    @property
    @abstractmethod
    def on_lost(self) -> OnLost:
        """If records were deleted before they were read: wait for an operator, or go on with the oldest left."""

    @abstractmethod
    def check_source(self, source: str, *, decodes: bool) -> None:
        """Raises ApplicationError when the source cannot read it. `decodes`: the source has a decoder."""

    def stream(self, partition: int) -> str:
        """The name of a partition's stream: its origin is `{source}/{stream}`."""
        return f"{self.stream_prefix}{partition}"

    def owns(self, stream: str) -> bool:
        """Whether a stream's name is that of a partition, which no client may use."""
        return stream.startswith(self.stream_prefix)


def check_transport(source: str, transport: object, *, decodes: bool) -> None:
    """Raises ApplicationError for what is no transport, or none for this source."""
    if not isinstance(transport, Transport):
        known = sorted({kind.__name__ for kind in Transport.__subclasses__()})
        raise ApplicationError(
            f"source {source!r}: from_={transport!r} is nothing that a source can read; expected a value of"
            f" bettong.{', '.join(known)}"
        )
    check_connection(f"source {source!r}", transport.connection)
    transport.check_source(source, decodes=decodes)
    if transport.start not in ("earliest", "latest"):
        raise ApplicationError(
            f"source {source!r}: start={transport.start!r}: expected 'earliest' or 'latest'"
        )
    if transport.on_lost not in ("stop", "skip"):
        raise ApplicationError(f"source {source!r}: on_lost={transport.on_lost!r}: expected 'stop' or 'skip'")
