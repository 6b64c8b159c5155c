"""A topic of the user's as a source. Pure data: no connection, no secret."""

import re
from dataclasses import dataclass
from typing import Literal

from bettong.errors import ApplicationError

# Kafka takes 249; here the name also stands in the names of streams, which take 128.
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,100}")


@dataclass(frozen=True, slots=True)
class ExternalTopic:
    """Reads a topic of any Kafka cluster: `app.source(..., decoder=..., kafka=ExternalTopic("orders"))`.

    Values go to the source's decoder; keys and headers are not read, and records without a value (tombstones) are
    passed over. `connection` names an entry of the file BETTONG_CONNECTIONS, by default that of the source's name.
    `start`: where reading begins the very first time. `on_lost`: what to do when records were deleted before they were
    read: wait for an operator, or go on with the oldest that is left.
    """

    topic: str
    connection: str | None = None
    start: Literal["earliest", "latest"] = "earliest"
    on_lost: Literal["stop", "skip"] = "stop"

    def stream(self, partition: int) -> str:
        """The name of a partition's stream: its origin is `{source}/{stream}`."""
        return f"{self._prefix}{partition}"

    def owns(self, stream: str) -> bool:
        """Whether a stream has the name of a partition, which no client may use."""
        return stream.startswith(self._prefix)

    @property
    def _prefix(self) -> str:
        return f"kafka.{self.topic}."

    def check(self, source: str, *, decodes: bool) -> None:
        """Raises ApplicationError when the source cannot read it."""
        if not _TOPIC.fullmatch(self.topic) or self.topic in (".", ".."):
            raise ApplicationError(
                f"source {source!r}: {self.topic!r} is no topic: expected 1 to 100 letters, digits, '.', '_' or '-'"
            )
        if self.start not in ("earliest", "latest"):
            raise ApplicationError(
                f"source {source!r}: start={self.start!r}: expected 'earliest' or 'latest'"
            )
        if self.on_lost not in ("stop", "skip"):
            raise ApplicationError(f"source {source!r}: on_lost={self.on_lost!r}: expected 'stop' or 'skip'")
        if not decodes:
            raise ApplicationError(
                f"source {source!r}: records of Kafka are bytes; give the source a decoder, such as each(function)"
            )
