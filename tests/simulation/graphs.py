"""Graphs of streams as values: what an application is built from, and what the interpreter reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bettong import Application
from bettong.application.execution_mode import ExecutionMode
from bettong.application.key import Key
from bettong.application.on_error import DEAD_LETTER, OnError
from bettong.application.streams import Merged
from tests.simulation.function_table import Function

INPUTS = ("source", "key_by")
EXITS = ("key_by", "sink")


@dataclass(frozen=True)
class Node:
    """A stream or a sink. `kind` is the method that makes it; what a kind has no use for is as it is by default."""

    name: str
    kind: str
    parents: tuple[str, ...] = ()
    function: Function | None = None
    way: ExecutionMode = ExecutionMode.PYTHON
    on_error: OnError = DEAD_LETTER
    key: Key | None = None
    encoder: Callable[[Any], bytes] | None = None
    message: type[Any] = object  # of a source

    def __str__(self) -> str:
        what = self.function or self.encoder or (self.message if self.kind == "source" else "")
        of = getattr(what, "__name__", what)
        key = getattr(self.key, "__name__", self.key)
        reported = [
            str(of),
            f"key={key}" * (self.key is not None),
            self.way.value * (self.way is not ExecutionMode.PYTHON),
        ]
        reported += [f"on_error={self.on_error}" * (self.on_error != DEAD_LETTER)]
        return f"{self.name} = {'+'.join(self.parents)}.{self.kind}({', '.join(filter(None, reported))})"


@dataclass(frozen=True)
class Graph:
    """Nodes in the order in which they are declared: parents first."""

    nodes: tuple[Node, ...]

    def __str__(self) -> str:
        return "\n".join(map(str, self.nodes))

    def __getitem__(self, name: str) -> Node:
        return next(node for node in self.nodes if node.name == name)

    @property
    def sources(self) -> list[Node]:
        """Where messages come in."""
        return [node for node in self.nodes if node.kind == "source"]

    @property
    def computations(self) -> list[Node]:
        """What rows pass inside of a stage, merges included."""
        return [node for node in self.nodes if node.kind not in (*INPUTS, *EXITS)]

    @property
    def exits(self) -> list[Node]:
        """Where rows leave a stage."""
        return [node for node in self.nodes if node.kind in EXITS]

    @property
    def is_timed(self) -> bool:
        """Whether anything fires."""
        return any(node.function is not None and node.function.timers for node in self.nodes)

    def parts(self, name: str) -> list[str]:
        """A stream, or those that it merges."""
        node = self[name]
        if node.kind != "merge":
            return [name]
        return [part for parent in node.parents for part in self.parts(parent)]

    def message(self, name: str) -> type[Any] | None:
        """The class of a stream's messages; None where it merges several."""
        node = self[name]
        if node.function is not None:
            return node.function.gives
        found = {self.message(parent) for parent in node.parents} or {node.message}
        return found.pop() if len(found) == 1 else None


def application(graph: Graph, name: str) -> Application:
    """The graph as a user would write it."""
    app = Application(name)
    made: dict[str, Any] = {}
    for node in graph.nodes:
        parents = [made[parent] for parent in node.parents]
        options: dict[str, Any] = {"name": node.name, "on_error": node.on_error}
        if node.kind == "source":
            made[node.name] = app.source(schema=node.message, key=node.key, **options)
        elif node.kind == "merge":
            merged: Merged = parents[0].merge(*parents[1:])
            made[node.name] = merged
        elif node.kind == "key_by":
            made[node.name] = parents[0].key_by(node.key, **options)
        elif node.kind == "sink":
            parents[0].sink(encoder=node.encoder, **options)
        else:
            assert node.function is not None
            functions = node.function.forms[node.way]
            if node.kind == "stateful":
                parts = graph.parts(node.parents[0])
                handlers = {made[part]: functions[_class(graph, part)] for part in parts}
                deletes = node.function.delete_when
                made[node.name] = parents[0].stateful(
                    handlers,
                    state=node.function.state,
                    delete_when=deletes[node.way] if deletes is not None else None,
                    timers={name: forms[node.way] for name, forms in node.function.timers.items()},
                    **options,
                )
            else:
                function = functions[_class(graph, node.parents[0])]
                made[node.name] = getattr(parents[0], node.kind)(function, **options)
    return app


def _class(graph: Graph, stream: str) -> type[Any]:
    found = graph.message(stream)
    assert found is not None
    return found
