"""`Stream.dead_letters`: the messages that a computation could not process, as a stream."""

from __future__ import annotations

from dataclasses import dataclass

from bettong.application.nodes.computation import Computation
from bettong.application.nodes.node import StreamNode
from bettong.application.on_error import DEAD_LETTER, OnError
from bettong.errors import ApplicationError
from bettong.schema.schema import schema_of


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that a computation could not process, and why. `message`: as it entered the stage, as JSON."""

    computation: str
    reason: str
    message: str


@dataclass(frozen=True, eq=False)
class DeadLetterMessages(Computation):
    """The dead letters of the computation `of`, which also reads `parent`."""

    of: Computation
    on_error: OnError = DEAD_LETTER
    method = "dead_letters"

    @property
    def parents(self) -> tuple[StreamNode, ...]:
        """See StreamNode. A join reads two."""
        return self.of.parents


def dead_letter_messages(of: StreamNode) -> DeadLetterMessages:
    """The node of `dead_letters`. Raises ApplicationError for a node that is no computation, or has none."""
    if not isinstance(of, Computation) or isinstance(of, DeadLetterMessages):
        raise ApplicationError(
            f"dead_letters of {of.name!r}: only map, filter, flat_map, branch, stateful, window and joins have a stream"
            " of them; what others refuse is in the sink dead-letters"
        )
    if of.on_error != DEAD_LETTER:
        raise ApplicationError(
            f"dead_letters of {of.name!r}: with on_error={of.on_error!r} there are none; leave on_error out"
        )
    failing, schema = of.failing, schema_of(DeadLetter)
    return DeadLetterMessages(f"{failing.name}-dead-letters", schema, failing.keyed, failing.parent, failing)
