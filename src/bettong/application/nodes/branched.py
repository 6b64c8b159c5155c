"""`Stream.branch`: a stream divided by predicates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bettong.application.nodes.node import StreamNode
from bettong.application.nodes.stateless import Filtered, check_predicate
from bettong.application.on_error import OnError, check_on_error
from bettong.errors import ApplicationError


@dataclass(frozen=True, eq=False)
class Branched(Filtered):
    """One branch: the messages of `parent` for which its predicate is true, and that of no branch before it.

    `previous`: the branch before it.
    """

    previous: Branched | None = None
    method = "branch"


def branched(
    parent: StreamNode, predicates: Mapping[str, Callable[[Any], Any]], on_error: OnError
) -> list[Branched]:
    """The nodes of `branch`, in the order of the predicates. Raises ApplicationError."""
    if not predicates:
        raise ApplicationError(
            f"branch of {parent.name!r}: give a predicate for each, as in branch(large=is_large)"
        )
    found: list[Branched] = []
    for name, predicate in predicates.items():
        owner = f"branch {name!r}"
        check_on_error(owner, on_error)
        schema = parent.one_schema(name)
        check_predicate(owner, predicate, schema)
        previous = found[-1] if found else None
        found.append(Branched(name, schema, parent.keyed, parent, predicate, on_error, previous))
    return found
