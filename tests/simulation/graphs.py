"""Graphs of streams as values: what an application is built from, and what the interpreter reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from bettong import Application, ApplicationError, DeadLetter, Stream
from bettong.application.execution_mode import ExecutionMode
from bettong.application.joins.kinds import How, JoinKind
from bettong.application.key import Key
from bettong.application.lifetime import Lifetime
from bettong.application.nodes.stateful import stateful
from bettong.application.on_error import DEAD_LETTER, OnError
from bettong.application.plan import plan
from bettong.application.streams import WindowedStream
from bettong.application.windows.partials import local_windows
from bettong.application.windows.windowed import windowed
from tests.simulation.function_table import Function
from tests.simulation.key_joins import join_streams
from tests.simulation.open_windows import WindowOptions
from tests.simulation.reference_rows import TABLES, Joining

INPUTS = ("source", "key_by")
OUTPUTS = ("key_by", "sink")
# What comes out of a computation beside its results.
SIDES = ("late", "dead_letters")


@dataclass(frozen=True)
class Node:
    """A stream or a sink. `kind` is the method that makes it; what a kind has no use for is as it is by default.

    "late": the late messages of a window, or of a join's side; "dead_letters": what a computation refused.
    `out_of_order_ns`: of a source whose messages say when
    they happened; None: that is when they are taken in.
    """

    name: str
    kind: str
    parents: tuple[str, ...] = ()
    function: Function | None = None
    mode: ExecutionMode = ExecutionMode.PYTHON
    on_error: OnError = DEAD_LETTER
    key: Key | None = None
    encoder: Callable[[Any], bytes] | None = None
    message: type[Any] = object  # of a source
    out_of_order_ns: int | None = None
    windows: WindowOptions | None = None
    join: tuple[JoinKind, How] | None = None
    # Of a join with a reference table.
    joining: Joining | None = None
    # Of states, and of the table of `join_latest`.
    lifetime: Lifetime | None = None
    # Of a branch: the first one of those that divide the same stream.
    first: str = ""
    # Of windows: the key_by before which their messages are combined.
    local: Node | None = None

    def __str__(self) -> str:
        what = self.function or self.encoder or (self.message if self.kind == "source" else "")
        of = getattr(what, "__name__", what)
        key = getattr(self.key, "__name__", self.key)
        reported = [
            str(of),
            f"key={key}" * (self.key is not None),
            self.mode.value * (self.mode is not ExecutionMode.PYTHON),
        ]
        reported += [f"out_of_order={self.out_of_order_ns}" * (self.out_of_order_ns is not None)]
        reported += [f"behind {self.first}" * (self.first not in ("", self.name))]
        reported += [str(self.windows) * (self.windows is not None), str(self.join) * (self.join is not None)]
        reported += [f"ttl={self.lifetime}" * (self.lifetime is not None)]
        reported += [str(self.joining) * (self.joining is not None)]
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
        return [node for node in self.nodes if node.kind not in (*INPUTS, *OUTPUTS)]

    @property
    def outputs(self) -> list[Node]:
        """Where rows leave a stage."""
        return [node for node in self.nodes if node.kind in OUTPUTS]

    @property
    def is_timed(self) -> bool:
        """Whether anything fires."""
        return any(
            node.windows or node.join or node.lifetime or (node.function is not None and node.function.timers)
            for node in self.nodes
        )

    def parts(self, name: str) -> list[str]:
        """A stream, or those that it merges."""
        node = self[name]
        if node.kind != "merge":
            return [name]
        return [part for parent in node.parents for part in self.parts(parent)]

    def message(self, name: str) -> type[Any] | None:
        """The class of a stream's messages; None where it merges several."""
        node = self[name]
        if node.kind == "dead_letters":
            return DeadLetter
        if node.kind == "late":
            return self.message(self[node.parents[0]].parents[node.name.endswith("-right")])
        if node.function is not None:
            return node.function.returns
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
            event_time = None if node.out_of_order_ns is None else "at"
            made[node.name] = app.source(schema=node.message, key=node.key, event_time=event_time, **options)
        elif node.kind == "late":
            side = node.name.rpartition("-")[2] if graph[node.parents[0]].join else ""
            made[node.name] = getattr(parents[0], f"late_{side}" if side else "late")
        elif node.kind == "dead_letters":
            made[node.name] = parents[0].dead_letters
        elif node.kind == "merge":
            made[node.name] = parents[0].merge(*parents[1:])
        elif node.kind == "branch":
            if node.first == node.name:
                made |= parents[0].branch(on_error=node.on_error, **_predicates(graph, node))
        elif node.kind == "key_by":
            made[node.name] = parents[0].key_by(node.key, **options)
        elif node.kind == "sink":
            parents[0].sink(encoder=node.encoder, **options)
        else:
            assert node.function is not None
            functions = node.function.forms[node.mode]
            if node.join is not None:
                combine, kind, how = functions[_class(graph, node.parents[0])], *node.join
                left, right = parents
                made[node.name] = join_streams(
                    left, right, combine, kind, how, lifetime=node.lifetime, **options
                )
            elif node.joining is not None:
                made[node.name] = _with_rows(graph, node, parents[0])
            elif node.local is not None:
                made[node.name] = _local_window(app, node, parents[0])
            elif node.windows is not None:
                made[node.name] = _window(app, node, parents[0])
            elif node.kind == "stateful":
                parts = graph.parts(node.parents[0])
                handlers = {made[part]: functions[_class(graph, part)] for part in parts}
                deletes = node.function.delete_when
                assert node.function.state is not None
                of_any = stateful(
                    parents[0].node,
                    {stream.node: handler for stream, handler in handlers.items()},
                    state=node.function.state,
                    delete_when=deletes[node.mode] if deletes is not None else None,
                    timers={name: forms[node.mode] for name, forms in node.function.timers.items()},
                    **options,
                )
                # Times to live of any number of ns, which an application cannot give.
                made[node.name] = Stream(app, app.add(replace(of_any, lifetime=node.lifetime)))
            else:
                function = functions[_class(graph, node.parents[0])]
                made[node.name] = getattr(parents[0], node.kind)(function, **options)
    return app


def waits_for_itself(graph: Graph) -> bool:
    """Whether it is refused because a stage would wait for its own watermark."""
    if not graph.is_timed:
        return False
    try:
        plan(application(graph, "any"))
    except ApplicationError as error:
        if "wait for itself" in str(error):
            return True
        raise
    return False


def _with_rows(graph: Graph, node: Node, parent: Stream[Any]) -> Stream[Any]:
    assert node.function is not None
    assert node.joining is not None
    table = TABLES[node.joining.row]
    return parent.join_reference(
        table.first,
        node.function.python[_class(graph, node.parents[0])],
        key=table.key,
        on=node.joining.on,
        how=node.joining.how,
        name=node.name,
        on_error=node.on_error,
    )


def _window(app: Application, node: Node, parent: Stream[Any]) -> WindowedStream[Any, Any]:
    """With an early time of any number of ns, which an application cannot give."""
    assert node.function is not None
    assert node.windows is not None
    of = node.windows
    made, late = windowed(
        parent.node,
        of.kind,
        node.function.aggregations[node.mode],
        name=node.name,
        late=of.late,
        emit_empty=of.emit_empty,
        early=timedelta(seconds=1) if of.early_ns is not None else None,
        version=1,
        on_error=node.on_error,
    )
    made = replace(made, windowing=replace(made.windowing, early_ns=of.early_ns))
    app.add(made)
    if late is not None:
        late = replace(late, windowed=made)
        app.add(late)
    return WindowedStream(app, made, late)


def _local_window(app: Application, node: Node, parent: Stream[Any]) -> Stream[Any]:
    """As `_window`, and `Stream.local` before it."""
    assert node.function is not None
    assert node.windows is not None
    assert node.local is not None
    assert node.local.key is not None
    of = node.windows
    partials, behind, made = local_windows(
        parent.node,
        node.local.key,
        node.local.on_error,
        of.kind,
        node.function.aggregations[node.mode],
        name=node.name,
        emit_empty=of.emit_empty,
        early=timedelta(seconds=1) if of.early_ns is not None else None,
        on_error=node.on_error,
    )
    made = replace(made, windowing=replace(made.windowing, early_ns=of.early_ns))
    for each in (partials, behind, made):
        app.add(each)
    return Stream(app, made)


def _predicates(graph: Graph, first: Node) -> dict[str, Callable[[Any], bool]]:
    """Those of all branches of a stream."""
    found: dict[str, Callable[[Any], bool]] = {}
    for node in graph.nodes:
        if node.first == first.name:
            assert node.function is not None
            found[node.name] = node.function.forms[node.mode][_class(graph, node.parents[0])]
    return found


def _class(graph: Graph, stream: str) -> type[Any]:
    found = graph.message(stream)
    assert found is not None
    return found
