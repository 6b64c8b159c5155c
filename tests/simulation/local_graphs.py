"""Graphs in which `local` takes the place of `key_by` before windows: what they give must be the same."""

from __future__ import annotations

from dataclasses import replace

from bettong.application.execution_mode import ExecutionMode
from bettong.application.windows.kinds import Ranges
from tests.simulation.graphs import Graph, Node

# Aggregations that take every message, and combine what they have.
LOCAL = ("local_sums", "totals", "part_totals")


def with_local(graph: Graph) -> Graph | None:
    """The graph with `local` wherever it can be; None where it can be nowhere."""
    found: list[Node] = list(graph.nodes)
    for node in graph.nodes:
        keyed = _keyed_before(graph, node)
        if keyed is not None:
            found.remove(keyed)
            found[found.index(node)] = replace(node, parents=keyed.parents, local=keyed)
    return Graph(tuple(found)) if len(found) < len(graph.nodes) else None


def names_without(graph: Graph) -> dict[str, str]:
    """By the computations that `local` adds to a graph, those that say the same without it."""
    found: dict[str, str] = {}
    for node in graph.nodes:
        if node.local is not None:
            found |= {f"{node.name}-partials": node.name, f"{node.name}-keyed": node.local.name}
    return found


def _keyed_before(graph: Graph, node: Node) -> Node | None:
    """The key_by that leads to such windows alone.

    Not of a merge: what combines messages of several stages makes one stage of them, which key_by does not.
    """
    if node.windows is None or node.function is None or node.function.name not in LOCAL:
        return None
    fits = isinstance(node.windows.kind, Ranges) and node.windows.late == "drop"
    before = graph[node.parents[0]]
    if before.kind != "key_by" or graph[before.parents[0]].kind == "merge":
        return None
    behind = [each for each in graph.nodes if before.name in each.parents]
    refused = [each for each in graph.nodes if each.kind == "dead_letters" and node.name in each.parents]
    fits &= node.mode is ExecutionMode.PYTHON and behind == [node] and not refused
    return before if fits else None
