"""`bettong check`: builds an application and prints its graph."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.tree import Tree

    from bettong.application.lifetime import Lifetime
    from bettong.application.plan import Plan, PlannedOperator, Stage, StageOutput
    from bettong.application.timers import StateTimer

APPLICATION = typer.Argument(
    metavar="APP.py", help="The application: a Python file, or FILE:NAME of several."
)

# The classes of computations that are not named as the methods which make them.
_METHODS = {"Mapped": "map", "Filtered": "filter", "FlatMapped": "flat_map"}


def check(application: Annotated[str, APPLICATION]) -> None:
    """Build and compile an application, find its mistakes, and print its graph: stages, topics, streams.

    Compiled functions take some seconds the first time.
    """
    from rich.console import Console

    from bettong.application.plan import plan
    from bettong.config.service import ServiceSettings
    from bettong.edges.application_file import load
    from bettong.edges.kernel_cache import kernel_cache
    from bettong.worker.stage_program import program

    planned = plan(load(application))
    cache = kernel_cache(ServiceSettings.model_fields["kernel_cache"].default)
    for stage in planned.stages:
        # Nothing is saved here, so nothing needs a true key.
        program(stage, compiled=True, cache=cache, state_key=b"check")
    Console().print(tree(planned))


def tree(planned: Plan) -> Tree:
    """The graph, stage by stage: what comes in, what is computed, what goes out."""
    from rich.tree import Tree

    counts = f"{len(planned.sources)} source(s), {len(planned.stages)} stage(s), {len(planned.sinks)} sink(s)"
    root = Tree(f"[bold]{planned.application}[/bold]  [dim]{counts}[/dim]", highlight=False)
    for stage in planned.stages:
        _add_stage(root, planned, stage)
    return root


def _add_stage(root: Tree, planned: Plan, stage: Stage) -> None:
    from bettong.topics import stage_topic

    branch = root.add(
        f"stage [bold cyan]{stage.name}[/bold cyan]  [dim]topic {stage_topic(planned.application, stage.name)}[/dim]"
    )
    sources = {source.name: source for source in planned.sources}
    for entry in stage.inputs:
        source = sources.get(entry.stream)
        what = "source" if source is not None else "keyed"
        key = f"key {_named(entry.key)}" if entry.key is not None else "no key, frames spread over partitions"
        takes = ""
        if source is not None:
            takes = ", columns or bytes" if source.decoder is not None else ", columns"
            takes += _policy(source.on_error)
            takes += f", reads {source.from_.title}" if source.from_ is not None else ""
        branch.add(f"{what} [green]{entry.stream}[/green]: {entry.schema.name}, {key}{takes}")
    for operator in stage.operators:
        branch.add(_computation(operator))
    for output in stage.outputs:
        branch.add(_stage_output(planned, output))


def _computation(operator: PlannedOperator) -> str:
    from bettong.application.streams import Stateful

    node = operator.node
    state = (
        f", state {_named(node.state)}{_ttl(node.lifetime)}{_deleted(node.delete_when)}{_timers(node.timers)}"
        if isinstance(node, Stateful)
        else ""
    )
    name = type(node).__name__
    kind, reads = _METHODS.get(name, name.lower()), " + ".join(operator.reads)
    facts = f"{node.way.value}{_policy(node.on_error)}"
    return f"{kind} [yellow]{node.name}[/yellow]: {reads} -> {node.schema.name}{state}  [dim]{facts}[/dim]"


def _ttl(lifetime: Lifetime | None) -> str:
    """How long a state lives, as `timedelta` writes it."""
    if lifetime is None:
        return ""
    ttl = str(timedelta(microseconds=lifetime.ttl_ns // 1000)).replace("days,", "days").replace("day,", "day")
    return f", ttl {ttl}" + (" by event time" if lifetime.clock.name == "EVENT" else "")


def _deleted(delete_when: object) -> str:
    return f", deleted when {_named(delete_when)}" if delete_when is not None else ""


def _timers(timers: Sequence[StateTimer]) -> str:
    """Each timer, by what clock it fires, and what is called then."""
    return "".join(
        f", timer {timer.field} by {timer.clock.value} calls {_named(timer.function)}" for timer in timers
    )


def _stage_output(planned: Plan, output: StageOutput) -> str:
    from bettong.application.streams import Sink
    from bettong.topics import sink_topic

    target, streams = output.target, ", ".join(output.streams)
    if isinstance(target, Sink):
        encoder = f"encoded by {_named(target.encoder)}" if target.encoder is not None else "JSON"
        to = f", to {type(target.to).__name__}" if target.to is not None else ""
        topic = sink_topic(planned.application, target.name)
        encoder += _policy(target.on_error)
        return f"sink [magenta]{target.name}[/magenta]: {streams}, {encoder}{to}  [dim]topic {topic}[/dim]"
    key = f"by key {_named(target.key)}{_policy(target.on_error)}"
    return f"to stage [bold cyan]{output.stage}[/bold cyan]: {streams}, {key}"


def _policy(on_error: str) -> str:
    """What it says of messages that cannot be processed, unless that is the default."""
    return "" if on_error == "dead-letter" else f", on error {on_error}"


def _named(thing: object) -> str:
    return thing if isinstance(thing, str) else str(getattr(thing, "__name__", type(thing).__name__))
