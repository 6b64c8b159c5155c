"""Whether a dead letter's message can be sent to its source again, and why not. Pure.

Sent again, a message passes its whole stage: every computation there sees it once more, not only the one that could
not process it. So a dead letter is held back when another one has processed its message already.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bettong.application.joins.joined import Joined
from bettong.application.joins.kinds import Within
from bettong.application.nodes.dead_letter_messages import DeadLetterMessages
from bettong.application.nodes.stateful import Stateful
from bettong.application.returns import Returns
from bettong.delivery import ORIGIN_TTL_NS
from bettong.errors import SchemaError
from bettong.frames.columns import Columns
from bettong.frames.text import message_of

if TYPE_CHECKING:
    from bettong.application.nodes.source import Source
    from bettong.application.plan import Plan, Stage
    from bettong.inspection.dead_letters import Found, ResendMark

# A consumer recognizes a duplicate by its number while it remembers the stream. Half of that, because clocks differ.
_REMEMBERED_NS = ORIGIN_TTL_NS // 2


@dataclass(frozen=True, slots=True)
class Resend:
    """The message goes to `source`: as the bytes that were received, or as a message object."""

    source: str
    row: bytes | None = None
    message: Any = None


@dataclass(frozen=True, slots=True)
class Cannot:
    """The message cannot be sent again, or must not be."""

    reason: str


def decide(
    plan: Plan, found: Found, mark: ResendMark | None, *, repeat: bool, now_ns: int
) -> Resend | Cannot:
    """What to do with a dead letter. `repeat`: send it even if other computations may have seen the message."""
    if mark is not None and mark.done:
        return Cannot("sent again already")
    if mark is not None and now_ns - mark.time_ns > _REMEMBERED_NS:
        return Cannot(
            "it was being sent again hours ago, by a command that did not finish: it is unknown whether it arrived"
        )
    dead_letter = found.dead_letter
    if dead_letter.fired:
        return Cannot("a timer caused it, not a message: there is nothing to send again")
    if dead_letter.truncated:
        return Cannot("only the beginning of its message is kept: it was too long for a dead letter")
    stream, _, who = dead_letter.origin.partition("/")
    source = next((each for each in plan.sources if each.name == stream), None)
    if "/" in who:
        return Cannot(
            f"it failed after {stream!r}, which no client can feed; the source's message that led to it was processed"
        )
    if source is None:
        return Cannot(f"it came from {stream!r}, which is not a source of this application")
    if dead_letter.whole_record:
        return Cannot("it is a whole record of the log, not one message")
    reasons = []
    if mark is None and found.mark_may_be_deleted:
        reasons.append(
            "records of its time were deleted from the topic of dead letters, maybe with the mark that it was sent"
            " again"
        )
    if dead_letter.computation != source.name:  # messages that the source refused were seen by nothing else
        stage = plan.stage_of(stream)
        if seen := sorted(set(_seen_by(stage, stream, dead_letter.computation))):
            reasons.append(f"{', '.join(seen)} would process it twice")
    if reasons and not repeat:
        return Cannot(f"{'; '.join(reasons)}; --repeat sends it anyway")
    return _as_sent(source, dead_letter.message, as_received=dead_letter.as_received)


def _as_sent(source: Source, message: bytes, *, as_received: bool) -> Resend | Cannot:
    if as_received:
        if source.decoder is None:
            return Cannot(f"source {source.name!r} no longer takes bytes: it has no decoder")
        return Resend(source.name, row=message)
    try:
        read = message_of(source.schema, message)
        Columns.of_messages(source.schema, [read])
    except SchemaError as error:
        return Cannot(f"source {source.name!r} no longer takes it: {error}")
    return Resend(source.name, message=read)


def _seen_by(stage: Stage, stream: str, computation: str) -> Iterator[str]:
    """The states and outputs that have processed the message although `computation` could not."""
    reads = {operator.node.name: operator.reads for operator in stage.operators}
    nodes = {operator.node.name: operator.node for operator in stage.operators}
    reached = {stream}
    for name, read in reads.items():  # in the order in which rows pass them
        if (
            name != computation
            and reached.intersection(read)
            and not isinstance(nodes[name], DeadLetterMessages)
        ):
            reached.add(name)
            if isinstance(nodes[name], Stateful):
                yield name
    for output in stage.outputs:
        if reached.intersection(output.streams) and output.target.name != computation:
            yield output.target.name
    # One message may have become several rows before: the others of them were processed.
    names = [name for name in _before(reads, computation, stage) if name in reached]
    before = [nodes[name] for name in names if name in nodes]
    several = not all(node.returns is not Returns.MANY for node in before)
    meeting = (reads.get(name, ()) for name in (*names, computation))
    outputs = (output.streams for output in stage.outputs if output.target.name == computation)
    if several or any(len(reached.intersection(streams)) > 1 for streams in (*meeting, *outputs)):
        yield computation
    failed = nodes.get(computation)
    # The join keeps the message for others, and may have paired it with some.
    if isinstance(failed, Joined) and isinstance(failed.kind, Within):
        yield computation


def _before(reads: dict[str, tuple[str, ...]], computation: str, stage: Stage) -> set[str]:
    """All streams that lead to a computation, or to an output of that target."""
    leaving = [
        each for output in stage.outputs if output.target.name == computation for each in output.streams
    ]
    todo, found = [*reads.get(computation, ()), *leaving], set[str]()
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo.extend(reads.get(name, ()))
    return found
