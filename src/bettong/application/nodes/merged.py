"""`Stream.merge`: several streams as one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from bettong.application.merging import check_parts
from bettong.application.nodes.node import StreamNode


@dataclass(frozen=True, eq=False)
class Merged(StreamNode):
    """Several streams as one. A node that reads it reads each of its parts: see `plan`."""

    parts: tuple[StreamNode, ...]

    @property
    def parents(self) -> tuple[StreamNode, ...]:
        """See StreamNode."""
        return self.parts


def merged(parts: Sequence[StreamNode], taken: Collection[str]) -> Merged:
    """The node of `merge`; its name is none of those that are `taken`. Raises ApplicationError."""
    check_parts(parts)
    schemas = {part.schema for part in parts}
    schema = schemas.pop() if len(schemas) == 1 else None
    name = "+".join(part.name for part in parts)
    while name in taken:
        name += "+"
    return Merged(name, schema, parts[0].keyed, tuple(parts))
