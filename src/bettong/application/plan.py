"""The plan: an application divided into stages.

A stage is what lies between two partitionings. Sources and the streams that `key_by` makes enter a stage through its
topic; all computations connected to them without another `key_by` run in the same stage, partition by partition. Rows
leave it through outputs: to the topic of another stage, or of a sink.

Merging costs nothing: a node that reads a merged stream reads each of its parts.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from bettong.application.application import Application
from bettong.application.event_time import EventTime
from bettong.application.joins.joined import Joined
from bettong.application.key import Key
from bettong.application.nodes.computation import Computation
from bettong.application.nodes.keyed import Keyed
from bettong.application.nodes.merged import Merged
from bettong.application.nodes.node import StreamNode, Uniform
from bettong.application.nodes.sink import Sink
from bettong.application.nodes.source import Source
from bettong.application.on_error import OnError
from bettong.application.reference_source import ReferenceSource
from bettong.errors import ApplicationError
from bettong.identifiers import stage_producer
from bettong.schema.schema import Schema
from bettong.topics import all_topics


@dataclass(frozen=True, slots=True)
class StageInput:
    """A stream whose frames enter through the stage's topic, and how its messages are keyed."""

    stream: str
    schema: Schema
    key: Key | None
    # Of a source; None for the output of another stage, whose frames carry event times.
    event_time: EventTime | None = None
    # The producers of its frames: see `producer_of`.
    producers: tuple[str, ...] = ()

    @property
    def idle_timeout_ns(self) -> int | None:
        """See EventTime. None for the output of another stage, whose partitions report when they are idle."""
        return None if self.event_time is None else self.event_time.idle_timeout_ns


@dataclass(frozen=True, slots=True)
class PlannedOperator:
    """One computation, and the streams (inputs or computations of the stage) that it reads.

    `right`: of a join, those of its right side, which are the last ones.
    """

    node: Computation
    reads: tuple[str, ...]
    right: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StageOutput:
    """Where rows of `streams`, which have one schema, leave the stage: to `target`, a sink or a `key_by`."""

    streams: tuple[str, ...]
    schema: Schema
    target: Keyed | Sink
    # The stage that the target enters; None for a sink.
    stage: str | None
    # Whether that stage needs time: then frames to it carry event times.
    needs_time: bool = False
    # The fields of that stage: see `Stage`.
    judges_lateness: bool = False
    needs_each_watermark: bool = False


@dataclass(frozen=True, slots=True)
class Stage:
    """One input log, computations in the order in which rows pass them, and outputs."""

    name: str
    inputs: tuple[StageInput, ...]
    operators: tuple[PlannedOperator, ...]
    outputs: tuple[StageOutput, ...]
    # Whether a computation here, or in a later stage, uses event time: then its frames carry watermarks.
    needs_time: bool = False
    # Whether a computation here, or in a later stage, decides of each message whether it is late: then frames of
    # messages out of order carry the watermark before each, so that the decision does not depend on batching.
    judges_lateness: bool = False
    # Whether frames of messages in order carry these, too.
    needs_each_watermark: bool = False

    @property
    def is_awaited(self) -> bool:
        """Whether later stages wait for each of its partitions, until that reports that it is idle."""
        return any(each.needs_time for each in self.outputs)

    @property
    def references(self) -> dict[str, ReferenceSource]:
        """The reference tables, by the computation that joins with them."""
        found = {each.node.name: each.node.reference for each in self.operators}
        return {name: source for name, source in found.items() if source is not None}

    def on_error(self) -> dict[str, OnError]:
        """The `on_error` of each computation, and of each sink or `key_by` behind an output."""
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
        """Every topic that the application needs, except those of batch boundaries."""
        return all_topics(
            self.application,
            stages=(stage.name for stage in self.stages),
            sinks=(sink.name for sink in self.sinks),
        )

    def stage(self, name: str) -> Stage:
        """The stage of that name."""
        return next(stage for stage in self.stages if stage.name == name)

    def stage_of(self, stream: str) -> Stage:
        """The stage that a source, or a `key_by`, enters."""
        return next(stage for stage in self.stages if any(stream == entry.stream for entry in stage.inputs))


def plan(app: Application) -> Plan:
    """Checks an application and divides it into stages.

    Raises ApplicationError as `Application.check` does, and for a stage that would wait for its own watermark.
    """
    app.check()
    groups = _groups(app)
    stage_names = {node: group[0].name for group in groups for node in group}
    stages = _with_marks(tuple(_stage(group, stage_names, app) for group in groups))
    _check_watermarks(stages)
    return Plan(application=app.name, sources=app.sources, sinks=app.sinks, stages=stages)


def _with_marks(stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
    """Marks the stages that need event time, or judge lateness: those with such a computation, and all before them."""
    needing = _with_upstream_stages(stages, _needs_time)
    judging = _with_upstream_stages(stages, lambda node: node.judges_lateness)
    needing_each = _with_upstream_stages(stages, lambda node: node.needs_each_watermark)
    return tuple(
        replace(
            stage,
            needs_time=stage.name in needing,
            judges_lateness=stage.name in judging,
            needs_each_watermark=stage.name in needing_each,
            outputs=tuple(
                replace(
                    output,
                    needs_time=output.stage in needing,
                    judges_lateness=output.stage in judging,
                    needs_each_watermark=output.stage in needing_each,
                )
                for output in stage.outputs
            ),
        )
        for stage in stages
    )


def _with_upstream_stages(stages: tuple[Stage, ...], is_one: Callable[[Computation], bool]) -> set[str]:
    """The stages with such a computation, and all stages upstream of them."""
    found = {stage.name for stage in stages if any(is_one(each.node) for each in stage.operators)}
    # Each round goes at least one stage upstream, until all are found: also where stages form a cycle.
    for _ in stages:
        found |= {stage.name for stage in stages if any(output.stage in found for output in stage.outputs)}
    return found


def _needs_time(node: Computation) -> bool:
    return node.goes_by_event_time or node.judges_lateness


def _check_watermarks(stages: tuple[Stage, ...]) -> None:
    """Raises ApplicationError for a stage that needs time and receives, through `key_by`, messages that it has sent.

    Its partitions would be their own origins, so each watermark would wait for itself. Ignoring these origins is no
    remedy: returning messages would be late by the time of the round trip, which differs from run to run.
    """
    by_name = {stage.name: stage for stage in stages}
    for stage in stages:
        paths = _paths_from(stage, by_name) if stage.needs_time else {}
        if stage.name in paths:
            reached = [by_name[name] for name in paths]
            waiting = {
                each.node.name: None for of in reached for each in of.operators if _needs_time(each.node)
            }
            keyed = paths[stage.name]
            raise ApplicationError(
                f"{_listed(waiting)} {'goes' if len(waiting) == 1 else 'go'} by event time, which would stand still:"
                f" {_listed(keyed)} {'brings' if len(keyed) == 1 else 'bring'} messages of stage {stage.name!r} back"
                " into it, so that its watermark would wait for itself. Merge what key_by made with streams that key_by"
                " made, too (put key_by on each of them before the merge): then another stage reads them"
            )


def _paths_from(stage: Stage, by_name: dict[str, Stage]) -> dict[str, tuple[str, ...]]:
    """By reachable stage, maybe `stage` itself: the `key_by` streams on a shortest path from `stage` to it."""
    paths: dict[str, tuple[str, ...]] = {}
    ahead: deque[tuple[Stage, tuple[str, ...]]] = deque([(stage, ())])
    while ahead:
        of, path = ahead.popleft()
        for output in of.outputs:
            if output.stage is not None and output.stage not in paths:
                paths[output.stage] = (*path, output.target.name)
                ahead.append((by_name[output.stage], paths[output.stage]))
    return paths


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))


def _groups(app: Application) -> list[list[Uniform]]:
    """Connected streams: a computation is in the group of all that it reads; a sink or a `key_by` connects none."""
    home: dict[StreamNode, list[Uniform]] = {}
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
            right = tuple(read.name for read in _parts((node.right,))) if isinstance(node, Joined) else ()
            operators.append(PlannedOperator(node, tuple(read.name for read in _reads(node)), right))
    outputs = [
        StageOutput(streams, schema, node, stage_names[node] if isinstance(node, Keyed) else None)
        for node in app.nodes.values()
        if isinstance(node, Keyed | Sink)
        for schema, streams in _by_schema(read for read in _reads(node) if read in members).items()
    ]
    return Stage(group[0].name, tuple(inputs), tuple(operators), tuple(outputs))


def _by_schema(streams: Iterable[Uniform]) -> dict[Schema, tuple[str, ...]]:
    """The names of streams, by the schema of their messages."""
    found: dict[Schema, tuple[str, ...]] = {}
    for stream in streams:
        found[stream.schema] = (*found.get(stream.schema, ()), stream.name)
    return found


def _reads(node: StreamNode | Sink) -> tuple[Uniform, ...]:
    """The streams that a node reads, with every merged stream resolved into its parts."""
    return tuple(_parts(node.parents))


def _parts(streams: tuple[StreamNode, ...]) -> Iterator[Uniform]:
    for stream in streams:
        if isinstance(stream, Merged):
            yield from _parts(stream.parts)
        elif isinstance(stream, Uniform):
            yield stream
