"""The plan: an application cut into stages.

A stage is what lies between two partitionings. Sources and the streams that `key_by` makes enter a stage
through its topic; everything that is connected behind them without another `key_by` runs in the same stage,
partition by partition. Rows leave it through outputs: to the topic of another stage, or to a sink's.

Merging costs nothing here: whoever reads a merged stream reads each of its parts.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from bettong.application.application import Application
from bettong.application.event_time import EventTime
from bettong.application.key import Key
from bettong.application.on_error import OnError
from bettong.application.streams import (
    Keyed,
    Merged,
    Node,
    Sink,
    Source,
    Stateful,
    Stateless,
    Stream,
    Uniform,
    parents_of,
)
from bettong.application.timers import Clock
from bettong.identifiers import stage_producer
from bettong.schema.schema import Schema
from bettong.topics import all_topics

Computation = Stateless | Stateful


@dataclass(frozen=True, slots=True)
class StageInput:
    """A stream whose frames come in through the stage's topic, and how its messages are keyed."""

    stream: str
    schema: Schema
    key: Key | None
    # Of a source; None for what another stage computes, whose frames carry it.
    event_time: EventTime | None = None
    # Who sends its messages: see `producer_of`.
    producers: tuple[str, ...] = ()

    @property
    def idle_timeout_ns(self) -> int | None:
        """See EventTime. None for what another stage computes: its partitions say when they wait for nothing."""
        return None if self.event_time is None else self.event_time.idle_timeout_ns


@dataclass(frozen=True, slots=True)
class PlannedOperator:
    """One computation, and the streams (inputs or computations of the stage) that it reads."""

    node: Computation
    reads: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StageOutput:
    """Where rows of `streams`, which have one schema, leave the stage: to `target`, a sink or what `key_by` made."""

    streams: tuple[str, ...]
    schema: Schema
    target: Keyed | Sink
    # The stage that the target enters; None for a sink.
    stage: str | None
    # Whether that stage needs time: then frames to it carry event times.
    needs_time: bool = False


@dataclass(frozen=True, slots=True)
class Stage:
    """One log in, computations in the order in which rows pass them, outputs out."""

    name: str
    inputs: tuple[StageInput, ...]
    operators: tuple[PlannedOperator, ...]
    outputs: tuple[StageOutput, ...]
    # Whether a computation here, or in a stage behind it, goes by event time: then its frames carry watermarks.
    needs_time: bool = False

    def on_error(self) -> dict[str, OnError]:
        """What each computation, and each sink or `key_by` behind an output, does with what it cannot process."""
        computations = {operator.node.name: operator.node.on_error for operator in self.operators}
        return computations | {output.target.name: output.target.on_error for output in self.outputs}


@dataclass(frozen=True, slots=True)
class Plan:
    """All stages of an application."""

    application: str
    sources: tuple[Source, ...]
    sinks: tuple[Sink, ...]
    stages: tuple[Stage, ...]

    @property
    def topics(self) -> tuple[str, ...]:
        """Every topic that the application needs, but those of batch boundaries."""
        return all_topics(
            self.application,
            stages=(stage.name for stage in self.stages),
            sinks=(sink.name for sink in self.sinks),
        )

    def stage(self, name: str) -> Stage:
        """The stage of that name."""
        return next(stage for stage in self.stages if stage.name == name)

    def stage_of(self, stream: str) -> Stage:
        """The stage that a source, or a stream made by `key_by`, enters."""
        return next(stage for stage in self.stages if any(stream == entry.stream for entry in stage.inputs))


def plan(app: Application) -> Plan:
    """Cuts a checked application into stages. Raises ApplicationError for what `Application.check` finds."""
    app.check()
    groups = _groups(app)
    stage_names = {node: group[0].name for group in groups for node in group}
    return Plan(
        application=app.name,
        sources=app.sources,
        sinks=app.sinks,
        stages=_with_time(tuple(_stage(group, stage_names, app) for group in groups)),
    )


def _with_time(stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
    """Marks the stages that need event time: those with a computation that goes by it, and all before them."""
    needing = {
        stage.name for stage in stages if any(goes_by_event_time(each.node) for each in stage.operators)
    }
    # Stages form no circle, so as many rounds as there are stages reach the first one.
    for _ in stages:
        needing |= {
            stage.name for stage in stages if any(output.stage in needing for output in stage.outputs)
        }
    return tuple(
        replace(
            stage,
            needs_time=stage.name in needing,
            outputs=tuple(replace(output, needs_time=output.stage in needing) for output in stage.outputs),
        )
        for stage in stages
    )


def goes_by_event_time(node: Computation) -> bool:
    """Whether a computation waits for watermarks."""
    if not isinstance(node, Stateful):
        return False
    lives_by_it = node.lifetime is not None and node.lifetime.clock is Clock.EVENT
    return lives_by_it or any(timer.clock is Clock.EVENT for timer in node.timers)


def _groups(app: Application) -> list[list[Uniform]]:
    """Connected streams: a computation belongs with all that it reads; a sink or a `key_by` joins nothing."""
    home: dict[Stream, list[Uniform]] = {}
    for node in app.nodes.values():
        if isinstance(node, Source | Keyed):
            home[node] = [node]
        elif isinstance(node, Computation):
            joined: list[Uniform] = []
            for read in _reads(node):
                if home[read] is not joined:
                    joined.extend(home[read])
                for member in home[read]:
                    home[member] = joined
            joined.append(node)
            home[node] = joined
    unique = {id(group): group for group in home.values()}
    order = {node: index for index, node in enumerate(app.nodes.values())}
    groups = [sorted(group, key=lambda node: order[node]) for group in unique.values()]
    return sorted(groups, key=lambda group: order[group[0]])


def _stage(group: list[Uniform], stage_names: dict[Uniform, str], app: Application) -> Stage:
    members = set(group)
    inputs: list[StageInput] = []
    operators: list[PlannedOperator] = []
    for node in group:
        if isinstance(node, Source):
            inputs.append(StageInput(node.name, node.schema, node.key, node.event_time, (node.name,)))
        elif isinstance(node, Keyed):
            stages = dict.fromkeys(stage_names[read] for read in _reads(node))
            producers = tuple(stage_producer(node.name, stage) for stage in stages)
            inputs.append(StageInput(node.name, node.schema, node.key, producers=producers))
        elif isinstance(node, Computation):
            operators.append(PlannedOperator(node, tuple(read.name for read in _reads(node))))
    outputs = [
        StageOutput(streams, schema, node, stage_names[node] if isinstance(node, Keyed) else None)
        for node in app.nodes.values()
        if isinstance(node, Keyed | Sink)
        for schema, streams in _by_schema(read for read in _reads(node) if read in members).items()
    ]
    return Stage(group[0].name, tuple(inputs), tuple(operators), tuple(outputs))


def _by_schema(streams: Iterable[Uniform]) -> dict[Schema, tuple[str, ...]]:
    """The names of streams, by what their messages are."""
    found: dict[Schema, tuple[str, ...]] = {}
    for stream in streams:
        found[stream.schema] = (*found.get(stream.schema, ()), stream.name)
    return found


def _reads(node: Node) -> tuple[Uniform, ...]:
    """The streams that a node reads, with every merged stream resolved into its parts."""
    return tuple(_parts(parents_of(node)))


def _parts(streams: tuple[Stream, ...]) -> Iterator[Uniform]:
    for stream in streams:
        if isinstance(stream, Merged):
            yield from _parts(stream.parts)
        elif isinstance(stream, Uniform):
            yield stream
