"""The bases of all nodes of streams.

Each node has a name, unique in its application, the schema of its messages, and the node(s) that it reads. A stream
with a key keeps it: `map`, `filter` and `flat_map` change messages, never the key that they were partitioned by; only
`key_by` assigns a new one (and with it begins a new stage, see `plan`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from bettong.errors import ApplicationError
from bettong.schema.schema import Schema


@dataclass(frozen=True, eq=False)
class StreamNode:
    """A named stream of messages of one schema (`merge` alone may mix several)."""

    name: str
    schema: Schema | None
    keyed: bool
    parts: tuple[StreamNode, ...] = field(default=(), init=False, repr=False)

    @property
    def parents(self) -> tuple[StreamNode, ...]:
        """The nodes that it reads: none for a source."""
        return ()

    def one_schema(self, consumer: str) -> Schema:
        """The schema of its messages. Raises ApplicationError where there are several."""
        if self.schema is None:
            raise ApplicationError(
                f"{consumer!r}: {self.name!r} mixes schemas; use stateful({{stream: function, ...}})"
            )
        return self.schema


@dataclass(frozen=True, eq=False)
class Uniform(StreamNode):
    """A stream whose messages have one schema: every stream except merged ones."""

    schema: Schema


@dataclass(frozen=True, eq=False)
class Derived(Uniform):
    """A stream that is derived from another one."""

    parent: StreamNode

    @property
    def parents(self) -> tuple[StreamNode, ...]:
        """See StreamNode."""
        return (self.parent,)
