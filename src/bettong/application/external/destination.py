"""The interface of sinks to external systems that they append to."""

from abc import ABC, abstractmethod
from typing import ClassVar

from bettong.application.external.connection import check_connection
from bettong.errors import ApplicationError
from bettong.schema.schema import Schema


class Destination(ABC):
    """The value of `to=` of a sink, without connection or secret.

    `kind` is the name of the receiver's module that delivers there: `bettong_receiver.connectors.{kind}`.
    """

    __slots__ = ()

    kind: ClassVar[str]

    @property
    @abstractmethod
    def connection(self) -> str | None:
        """The entry of BETTONG_CONNECTIONS; None: that of the sink's name."""

    @abstractmethod
    def check_sink(self, sink: str, schema: Schema | None, *, encoded: bool) -> None:
        """Raises ApplicationError when the sink's messages cannot go there.

        `schema` is None where the sink's stream mixes several; `encoded`: messages are the bytes of an encoder.
        """


def check_destination(sink: str, destination: object, schema: Schema | None, *, encoded: bool) -> None:
    """Raises ApplicationError for what is no destination, or none for this sink."""
    if not isinstance(destination, Destination):
        known = sorted({kind.__name__ for kind in Destination.__subclasses__()})
        raise ApplicationError(
            f"sink {sink!r}: to={destination!r} is no destination; expected a value of bettong.{', '.join(known)}"
        )
    check_connection(f"sink {sink!r}", destination.connection)
    destination.check_sink(sink, schema, encoded=encoded)
