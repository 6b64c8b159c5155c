"""A URL that a sink posts to."""

from dataclasses import dataclass
from typing import ClassVar

from bettong.application.external.destination import Destination
from bettong.schema.schema import Schema


@dataclass(frozen=True, slots=True)
class AtLeastOnceWebhook(Destination):
    """Posts messages to a URL: AT LEAST ONCE, a crash may post a batch again. `url` is in the connection.

    Each POST holds messages of one partition, in order: JSON objects, one a line. A sink with an encoder gets a POST a
    message, its body the encoder's bytes. Headers `Bettong-Sink` and `Bettong-Partition` name their origin.
    """

    kind: ClassVar[str] = "webhook"

    connection: str | None = None

    def check_sink(self, sink: str, schema: Schema | None, *, encoded: bool) -> None:
        """See Destination: it accepts all messages."""
