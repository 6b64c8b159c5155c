"""An application as boxes and arrows: sources, computations and sinks, and the streams between them. Pure.

A box is named `KIND:NAME`, because a source and a computation may share a name. A stream of `key_by` is no box: its
arrow leads from its origin to its readers, through the log of the stage that it enters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from bettong.application.nodes.sink import Sink
from bettong.application.plan import Plan, Stage
from bettong.inspection.application_graph import GraphEntry, StageGraph, application_graph


class BoxKind(StrEnum):
    """What a box stands for."""

    SOURCE = "source"
    COMPUTATION = "computation"
    SINK = "sink"


@dataclass(frozen=True, slots=True)
class Box:
    """A source, computation or sink. `stage`: the one that it runs in; "" for sources and sinks."""

    id: str
    kind: BoxKind
    name: str
    stage: str
    method: str
    text: str
    detail: str


@dataclass(frozen=True, slots=True)
class Arrow:
    """A stream from one box to another. `log`: the stage through whose log it goes; "" within a stage.

    `stream`: its name in the stage that reads it.
    """

    start: str
    end: str
    log: str
    stream: str


@dataclass(frozen=True, slots=True)
class FlowGraph:
    """`stages`: in the order in which messages pass them."""

    stages: tuple[str, ...]
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]


def box_id(kind: BoxKind, name: str) -> str:
    """The id of a box, as arrows name it."""
    return f"{kind}:{name}"


def flow_graph(planned: Plan) -> FlowGraph:
    """The boxes and arrows of an application; no arrow occurs twice."""
    described = application_graph(planned)
    boxes = {box.id: box for box in _boxes(planned, described)}
    made_of = _made_of(planned)
    arrows = dict.fromkeys(arrow for stage in planned.stages for arrow in _arrows(stage, made_of))
    return FlowGraph(tuple(stage.name for stage in planned.stages), tuple(boxes.values()), tuple(arrows))


def _boxes(planned: Plan, described: Sequence[StageGraph]) -> Iterator[Box]:
    sources = {source.name for source in planned.sources}
    for stage in described:
        for entry in stage.inputs:
            if entry.name in sources:
                yield _box(BoxKind.SOURCE, entry, "")
        for entry in stage.computations:
            yield _box(BoxKind.COMPUTATION, entry, stage.name)
        for entry in stage.outputs:
            if entry.kind == BoxKind.SINK:
                yield _box(BoxKind.SINK, entry, "")


def _box(kind: BoxKind, entry: GraphEntry, stage: str) -> Box:
    return Box(box_id(kind, entry.name), kind, entry.name, stage, entry.kind, entry.text, entry.detail)


def _made_of(planned: Plan) -> dict[str, tuple[str, ...]]:
    """The boxes that each stream comes from that enters a stage, by its name."""
    found: dict[str, tuple[str, ...]] = {
        source.name: (box_id(BoxKind.SOURCE, source.name),) for source in planned.sources
    }
    # A stage may stand before the one that feeds it, and a keyed stream may be made of another one.
    for _ in planned.stages:
        for stage in planned.stages:
            for output in stage.outputs:
                if not isinstance(output.target, Sink):
                    boxes = [each for name in output.streams for each in _starts(stage, name, found)]
                    before = found.get(output.target.name, ())
                    found[output.target.name] = tuple(dict.fromkeys((*before, *boxes)))
    return found


def _starts(stage: Stage, stream: str, made_of: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The boxes that a stream of a stage comes from: one of its computations, or the origins of an input."""
    if any(operator.node.name == stream for operator in stage.operators):
        return (box_id(BoxKind.COMPUTATION, stream),)
    return made_of.get(stream, ())


def _arrows(stage: Stage, made_of: Mapping[str, tuple[str, ...]]) -> Iterator[Arrow]:
    computed = {operator.node.name for operator in stage.operators}

    def log_of(stream: str) -> str:
        return "" if stream in computed else stage.name

    for operator in stage.operators:
        for stream in operator.reads:
            for start in _starts(stage, stream, made_of):
                yield Arrow(start, box_id(BoxKind.COMPUTATION, operator.node.name), log_of(stream), stream)
    for output in stage.outputs:
        if isinstance(output.target, Sink):
            for stream in output.streams:
                for start in _starts(stage, stream, made_of):
                    yield Arrow(start, box_id(BoxKind.SINK, output.target.name), log_of(stream), stream)
