"""`bettong check`: builds an application and prints its graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.tree import Tree

    from bettong.application.plan import Plan
    from bettong.inspection.application_graph import GraphEntry

APPLICATION = typer.Argument(
    metavar="APP.py", help="The application: a Python file, or FILE:NAME if it defines several."
)


def check(application: Annotated[str, APPLICATION]) -> None:
    """Build and compile an application, find its mistakes, and print its graph: stages, topics, streams.

    Compiled functions take some seconds the first time. Warns of names that a function reads and nothing defines.
    """
    from rich.console import Console

    from bettong.inspection.live.application import unknown_names_of
    from bettong.inspection.live.compilation import compiled_plan

    planned = compiled_plan(application)
    for line in unknown_names_of(application):
        Console(stderr=True).print(line, style="yellow", markup=False, highlight=False, soft_wrap=True)
    Console().print(tree(planned))


def tree(planned: Plan) -> Tree:
    """The graph, stage by stage: inputs, computations, outputs."""
    from rich.tree import Tree

    from bettong.inspection.application_graph import application_graph

    counts = f"{len(planned.sources)} source(s), {len(planned.stages)} stage(s), {len(planned.sinks)} sink(s)"
    root = Tree(f"[bold]{planned.application}[/bold]  [dim]{counts}[/dim]", highlight=False)
    for stage in application_graph(planned):
        branch = root.add(f"stage [bold cyan]{stage.name}[/bold cyan]  [dim]topic {stage.topic}[/dim]")
        for colour, entries in (("green", stage.inputs), ("yellow", stage.computations)):
            for entry in entries:
                branch.add(_line(entry, colour))
        for entry in stage.outputs:
            branch.add(_line(entry, "magenta" if entry.kind == "sink" else "bold cyan"))
    return root


def _line(entry: GraphEntry, colour: str) -> str:
    from rich.markup import escape

    detail = f"  [dim]{entry.detail}[/dim]" if entry.detail else ""
    return f"{entry.kind} [{colour}]{entry.name}[/{colour}]: {escape(entry.text)}{detail}"
