"""An application's graph in words, stage by stage: inputs, computations, outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import timedelta

from bettong.application.callables import name_of
from bettong.application.joins.joined import Joined
from bettong.application.joins.kinds import InWindow
from bettong.application.lifetime import Lifetime
from bettong.application.nodes.sink import Sink
from bettong.application.nodes.source import Source
from bettong.application.nodes.stateful import Stateful
from bettong.application.plan import Plan, PlannedOperator, Stage, StageOutput
from bettong.application.reference_source import ReferenceSource
from bettong.application.timers import StateTimer
from bettong.application.windows.windowed import Windowed
from bettong.application.windows.windowing import Windowing
from bettong.topics import sink_topic, stage_topic


@dataclass(frozen=True, slots=True)
class GraphEntry:
    """An input, a computation or an output: its kind, its name, what it does, and a `detail`."""

    kind: str
    name: str
    text: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class StageGraph:
    """One stage. `outputs` are of kind `sink`, or lead `to stage`."""

    name: str
    topic: str
    inputs: tuple[GraphEntry, ...]
    computations: tuple[GraphEntry, ...]
    outputs: tuple[GraphEntry, ...]


def application_graph(planned: Plan) -> tuple[StageGraph, ...]:
    """All stages, in the order in which messages pass them."""
    return tuple(_stage(planned, stage) for stage in planned.stages)


def _stage(planned: Plan, stage: Stage) -> StageGraph:
    return StageGraph(
        stage.name,
        stage_topic(planned.application, stage.name),
        _inputs(planned, stage),
        tuple(_computation(operator) for operator in stage.operators),
        tuple(_output(planned, output) for output in stage.outputs),
    )


def _inputs(planned: Plan, stage: Stage) -> tuple[GraphEntry, ...]:
    sources = {source.name: source for source in planned.sources}
    found = []
    for entry in stage.inputs:
        source = sources.get(entry.stream)
        key = f"key {_key(entry.key)}" if entry.key is not None else "no key, frames spread over partitions"
        takes = _takes(source) if source is not None else ""
        kind = "source" if source is not None else "keyed"
        found.append(GraphEntry(kind, entry.stream, f"{entry.schema.name}, {key}{takes}"))
    return tuple(found)


def _takes(source: Source) -> str:
    takes = ", columns or bytes" if source.decoder is not None else ", columns"
    reads = f", reads {source.from_.title}" if source.from_ is not None else ""
    return f"{takes}{_policy(source.on_error)}{reads}"


def _computation(operator: PlannedOperator) -> GraphEntry:
    node, state = operator.node, ""
    if isinstance(node, Windowed):
        state = f", {_windows(node.windowing)}"
    elif isinstance(node, Joined):
        state = f", {_join(node)}{_ttl(node.lifetime)}"
    elif node.reference is not None:
        state = f", {_reference(node.reference)}"
    elif isinstance(node, Stateful):
        state = f", state {_named(node.state)}{_ttl(node.lifetime)}{_deleted(node.delete_when)}{_timers(node.timers)}"
    return GraphEntry(
        node.method,
        node.name,
        f"{' + '.join(operator.reads)} -> {node.schema.name}{state}",
        f"{node.mode.value}{_policy(node.on_error)}",
    )


def _duration(duration_ns: int) -> str:
    if duration_ns < 0:
        return f"-{_duration(-duration_ns)}"
    text = str(timedelta(microseconds=duration_ns // 1000))
    return text.replace("days,", "days").replace("day,", "day")


def _ttl(lifetime: Lifetime | None) -> str:
    """How long a state lives, as `timedelta` writes it."""
    if lifetime is None:
        return ""
    return f", ttl {_duration(lifetime.ttl_ns)}" + (
        " by event time" if lifetime.clock.name == "EVENT" else ""
    )


def _windows(windowing: Windowing) -> str:
    """The kind of windows, their aggregation, and the policy for late messages."""
    facts: dict[str, object] = {"late": windowing.late} | (
        {"emit_empty": True} if windowing.emit_empty else {}
    )
    if windowing.early_ns is not None:
        facts["early"] = _duration(windowing.early_ns)
    kind = windowing.kind
    times = {
        field.name.removesuffix("_ns"): _duration(value) if field.name.endswith("_ns") else value
        for field in fields(kind)
        if (value := getattr(kind, field.name))
    }
    shown = ", ".join(f"{name} {value}" for name, value in (times | facts).items())
    return f"{type(kind).__name__.lower()} of {name_of(windowing.aggregation)} ({shown})"


def _join(node: Joined) -> str:
    """Which messages pair up, and from which sides unpaired ones are emitted."""
    kind, facts = node.kind, [str(node.how)]
    times = kind.windowing.kind if isinstance(kind, InWindow) else kind
    facts += [type(times).__name__.lower()] * (times is not kind)
    for field in fields(times):
        value = getattr(times, field.name)
        if type(value) is int and (value or times is kind):
            facts.append(f"{field.name.removesuffix('_ns')} {_duration(value)}")
    return ", ".join(facts)


def _reference(source: ReferenceSource) -> str:
    """The function that loads a table, its key, and how often it is loaded again."""
    every = "" if source.reload_every_ns is None else f", loaded every {_duration(source.reload_every_ns)}"
    return f"{source.schema.name} by {source.key} of {_named(source.load)}{every}"


def _deleted(delete_when: object) -> str:
    return f", deleted when {_named(delete_when)}" if delete_when is not None else ""


def _timers(timers: Sequence[StateTimer]) -> str:
    """Each timer, the clock that it fires by, and the function that it calls."""
    return "".join(
        f", timer {timer.field} by {timer.clock.value} calls {_named(timer.function)}" for timer in timers
    )


def _output(planned: Plan, output: StageOutput) -> GraphEntry:
    target, streams = output.target, ", ".join(output.streams)
    policy = _policy(target.on_error)
    if isinstance(target, Sink):
        encoder = f"encoded by {_named(target.encoder)}" if target.encoder is not None else "JSON"
        to = f", to {type(target.to).__name__}" if target.to is not None else ""
        topic = sink_topic(planned.application, target.name)
        return GraphEntry("sink", target.name, f"{streams}, {encoder}{policy}{to}", f"topic {topic}")
    return GraphEntry("to stage", str(output.stage), f"{streams}, by key {_key(target.key)}{policy}")


def _policy(on_error: str) -> str:
    """The policy for messages that cannot be processed, unless it is the default."""
    return "" if on_error == "dead-letter" else f", on error {on_error}"


def _key(key: object) -> str:
    if isinstance(key, tuple):
        return ", ".join(key) or "of all messages"
    return _named(key)


def _named(thing: object) -> str:
    return thing if isinstance(thing, str) else str(getattr(thing, "__name__", type(thing).__name__))
