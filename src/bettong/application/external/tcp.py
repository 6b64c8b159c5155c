"""A TCP peer that a sink sends to."""

from dataclasses import dataclass
from typing import ClassVar

from bettong.application.external.destination import Destination
from bettong.schema.schema import Schema


@dataclass(frozen=True, slots=True)
class AtLeastOnceTcp(Destination):
    """Sends messages over TCP: AT LEAST ONCE, a crash may send a batch again. The connection has `address`, HOST:PORT.

    JSON objects are sent as lines, with an empty line after each batch; the messages of a sink with an encoder each
    after their length, four bytes, big-endian, with 2**32-1 after each batch. The peer acknowledges a batch that it has
    kept with `ok` and a line end: TCP alone does not say what a peer read before it died. A batch is of one partition.
    """

    kind: ClassVar[str] = "tcp"

    connection: str | None = None

    def check_sink(self, sink: str, schema: Schema | None, *, encoded: bool) -> None:
        """See Destination: it accepts all messages."""
