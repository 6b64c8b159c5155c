"""Whether the results of an application are known before it runs, or depend on more than its messages. Pure.

| results depend on                                       | because                                         |
| ------------------------------------------------------- | ----------------------------------------------- |
| order: a state that messages of several sources change  | they are logged in order of arrival             |
| order: a state behind `key_by`                          | its messages come from several partitions       |
| order: which messages are late, of several origins      | the lowest of their watermarks counts           |
| order: timers, `ttl_clock="event"`                      | they fire between frames, not between messages  |
| clock: timers and times to live by the log clock        | it follows the time of the run                  |
| clock: event time that is the time of ingestion         | windows over it follow the time of the run      |

Results that depend on order may be the same in any, which only the author knows; those that depend on a clock are not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from bettong.application.nodes.stateful import Stateful
from bettong.application.plan import Plan, PlannedOperator, Stage
from bettong.application.timers import Clock

# A state with a longer time to live outlasts a run.
_TTL_NS_MAX = 3_600_000_000_000


def order_reasons(planned: Plan, fed: Collection[str], partitions: int) -> list[str]:
    """Why results depend on the order of messages, or on how they are grouped into frames; empty if they do not.

    `fed`: the sources that get messages.
    """
    several = {each.name for each in planned.sources if each.from_ is not None} if partitions > 1 else set()
    return [
        f"{each.node.method} {each.node.name!r} {reason}"
        for stage in planned.stages
        for each, inputs in _stateful(stage, fed)
        for reason in _reasons(stage, each, inputs, several, partitions)
    ]


def clock_reasons(planned: Plan, fed: Collection[str]) -> list[str]:
    """Why results depend on when messages come; empty if they do not."""
    found = []
    for stage in planned.stages:
        if stage.needs_time:
            by_clock = [
                each.stream
                for each in stage.inputs
                if each.stream in fed and each.event_time is not None and each.event_time.of is None
            ]
            found += [
                f"source {name!r} has no event_time=, so its windows go by a clock" for name in by_clock
            ]
        for each, _ in _stateful(stage, fed):
            node = each.node
            life = node.lifetime if isinstance(node, Stateful) else None
            if life is not None and life.clock is Clock.LOG and life.ttl_ns < _TTL_NS_MAX:
                found.append(f"{node.method} {node.name!r} ends states by the log clock (ttl=)")
            if isinstance(node, Stateful) and any(timer.clock is Clock.LOG for timer in node.timers):
                found.append(f"{node.method} {node.name!r} has a timer of the log clock (bettong.LogTimer)")
    return found


def _stateful(stage: Stage, fed: Collection[str]) -> Iterator[tuple[PlannedOperator, set[str]]]:
    """Each stateful operator, with the inputs of the stage that its messages come from."""
    from_inputs = {
        each.stream: {each.stream} for each in stage.inputs if each.event_time is None or each.stream in fed
    }
    for each in stage.operators:
        reached = [from_inputs.get(name, set()) for name in each.reads]
        inputs = from_inputs[each.node.name] = set().union(*reached)
        if isinstance(each.node, Stateful):
            yield each, inputs


def _reasons(
    stage: Stage, operator: PlannedOperator, inputs: set[str], several: set[str], partitions: int
) -> Iterator[str]:
    """`several`: sources whose messages come from several origins."""
    node = operator.node
    keyed = {each.stream for each in stage.inputs if each.event_time is None} & inputs
    if len(inputs) > 1:
        yield f"keeps a state of messages of {', '.join(map(repr, sorted(inputs)))}"
    elif keyed and partitions > 1:
        yield f"keeps a state behind {min(keyed)!r}, where messages of several partitions meet"
    elif node.judges_lateness and inputs & several:
        yield f"checks which messages are late, and those of {min(inputs)!r} come from several partitions of a topic"
    if not node.judges_lateness and node.goes_by_event_time:
        yield "has timers, or ends states, by event time, which fire between frames"
