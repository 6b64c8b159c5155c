"""Any graph has the interpreter's results, in every mode, however its messages are batched and partitioned.

The interpreter (`tests/simulation/interpreter.py`) is the specification. The small graphs below are each a way in which
frames, columns or shared objects could show; what they give is written out, and holds for the interpreter too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, note, settings

from bettong import Application, ApplicationError, Stream
from bettong.application.execution_mode import ExecutionMode
from tests.samples.kept_kernels import kept_kernels
from tests.simulation.delivered import expected
from tests.simulation.function_table import FUNCTIONS
from tests.simulation.functions import coded
from tests.simulation.graph_runs import check
from tests.simulation.graphs import Graph, Node
from tests.simulation.local_runs import check_with_local
from tests.simulation.message_outcome import StoppedError
from tests.simulation.messages import Item
from tests.simulation.random_graphs import Case, cases


@pytest.mark.timeout(900)
@settings(max_examples=420, derandomize=True)
@given(case=cases())
def test_any_graph_gives_what_the_interpreter_says(case: Case) -> None:
    note(str(case))
    check_with_local(case, cache=kept_kernels())


@pytest.mark.long
@pytest.mark.timeout(3600)
@settings(max_examples=20_000)
@given(case=cases())
def test_many_more_graphs_give_what_the_interpreter_says(case: Case) -> None:
    note(str(case))
    check_with_local(case, cache=kept_kernels())


SOURCE = Node("in", "source", key="key", message=Item)


def of(function: str, *parents: str, name: str = "", **more: Any) -> Node:
    """A computation, by default under the name of its function."""
    return Node(name or function, FUNCTIONS[function].kind, parents, FUNCTIONS[function], **more)


def merge(*parents: str) -> Node:
    return Node("merged", "merge", parents)


def sink(parent: str, **more: Any) -> Node:
    """A sink `to-PARENT`."""
    return Node(f"to-{parent}", "sink", (parent,), **more)


@dataclass
class Example:
    """`results`: of each sink, values (or small numbers, or text) in order. `dead_letters`: computation and reason."""

    nodes: list[Node]
    values: list[int]
    results: dict[str, list[Any]]
    dead_letters: list[tuple[str, str]] = field(default_factory=list)

    def case(self, boundaries: tuple[bool, ...]) -> Case:
        messages = tuple(("in", Item("a", 0, value)) for value in self.values)
        return Case(Graph((SOURCE, *self.nodes)), messages, boundaries)


EXAMPLES = {
    "rows of branches go in the order of messages, then of branches": Example(
        [
            of("shrink", "in"),
            of("halve", "in"),
            merge("halve", "shrink"),
            of("tally", "merged"),
            sink("merged"),
            sink("tally"),
            Node("keyed", "key_by", ("merged",), key="slot"),
            sink("keyed"),
        ],
        [3, 5, 100],
        {
            "to-merged": [1, 2, 3, 2, 3, 5, 50, 51, 100],
            "to-keyed": [1, 2, 3, 2, 3, 5, 50, 51, 100],
            "to-tally": [3, 9, 18, 26, 37, 53, 160, 179],
        },
        [("tally", "field 'small'")],
    ),
    "a branch through a map does not overtake the stream itself": Example(
        [of("shrink", "in"), merge("in", "shrink"), of("tally", "merged"), sink("tally")],
        [2, 2, 1],
        {"to-tally": [2, 8, 10, 18, 19, 27]},
    ),
    "what does not fit is its producer's, whoever reads it first": Example(
        [
            of("shrink", "in"),
            of("grow", "shrink", mode=ExecutionMode.COMPILED),
            of("relabel", "shrink"),
            sink("grow"),
            sink("relabel"),
        ],
        [100, 300, 40],
        {"to-grow": [97, 37], "to-relabel": [100, 40]},
        [("shrink", "field 'small'")],
    ),
    "what does not fit is refused where nobody needs all of it": Example(
        [of("shrink", "in"), of("narrow", "shrink"), sink("narrow")],
        [300, -3, 40],
        {"to-narrow": [40]},
        [("shrink", "field 'small'"), ("shrink", "field 'small'")],
    ),
    "what does not fit is skipped as its producer says": Example(
        [
            of("shrink", "in", on_error="skip"),
            of("grow", "shrink", mode=ExecutionMode.COMPILED),
            sink("grow", on_error="skip"),
            sink("shrink"),
        ],
        [300, 40],
        {"to-grow": [37], "to-shrink": [40]},
    ),
    "a function that changes its message does not change its sibling's": Example(
        [of("lose", "in"), of("spoil", "lose"), of("pry", "lose"), sink("spoil"), sink("pry"), sink("lose")],
        [1, 2],
        {"to-spoil": [1001, 1002], "to-pry": [1, 2], "to-lose": [1, 2]},
    ),
    "a predicate that changes its message keeps it as it came": Example(
        [of("lose", "in"), of("pry", "lose"), sink("pry")], [1, -3, 2], {"to-pry": [1, 2]}
    ),
    "an object within the state is a result as it was": Example(
        [of("keep_inside", "in"), of("narrow", "keep_inside"), sink("keep_inside"), sink("narrow")],
        [0, 0, 0],
        {"to-keep_inside": [50, 100, 150], "to-narrow": [50]},
    ),
    "a message that is kept and changed later is a result as it was": Example(
        [of("lose", "in"), of("hoard", "lose"), sink("hoard"), sink("lose")],
        [1, 2, 3],
        {"to-hoard": [1, 2, 3], "to-lose": [1, 2, 3]},
    ),
    "one object for all messages is a result for each": Example(
        [of("reuse", "in"), sink("reuse")], [1, 2, 3], {"to-reuse": [1, 2, 3]}
    ),
    "one object yielded again is a result each time, and the function is called once": Example(
        [of("lose", "in"), of("again", "lose"), sink("again")],
        [0, 2],
        {"to-again": [0, 0, 1, 2, 2, 3]},
    ),
    "an object of the state yielded again is a result each time": Example(
        [of("pour", "in"), sink("pour")],
        [0, 1, 2],
        {"to-pour": [0, 1, 3, 4, 5, 7]},
        [("pour", "ValueError: half-way")],
    ),
    "dead letters go by message, then by computation": Example(
        [
            of("shrink", "in", mode=ExecutionMode.COMPILED),
            of("split", "in", mode=ExecutionMode.COMPILED),
            of("tally", "in"),
            *(sink(each) for each in ("shrink", "split", "tally")),
        ],
        [150, 13, 300, 100],
        {"to-shrink": [150, 100], "to-split": [150, 100, 200], "to-tally": [163]},
        [
            *[("split", "field 'small'")] * 2,
            *((each, "ValueError: thirteen") for each in ("shrink", "split", "tally")),
            ("shrink", "field 'small'"),
            *[("split", "field 'small'")] * 3,
            ("split", "field 'small'"),
            ("tally", "field 'small'"),
        ],
    ),
}


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_the_interpreter_says(example: Example) -> None:
    found = expected(example.case((True,) * len(example.values)))
    results = {
        sink: [getattr(each, "value", None) or getattr(each, "small", 0) for each in given]
        for (sink, _, _), given in found.results.items()
    }
    assert results == {sink: values for sink, values in example.results.items() if values}
    dead_letters = [(computation, reason) for computation, reason, _ in found.dead_letters.elements()]
    assert sorted(dead_letters) == sorted(example.dead_letters)


@pytest.mark.parametrize("cut", [False, True], ids=["one frame", "a frame for each"])
@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_a_graph_gives_it_however_messages_are_cut_into_frames(example: Example, *, cut: bool) -> None:
    check(example.case((cut,) * len(example.values)), cache=kept_kernels())


STOPS: dict[str, tuple[list[Node], list[int], str, int]] = {
    "the first message that stops, not the first computation": (
        [of("shrink", "in", on_error="stop"), of("pry", "in", on_error="stop"), sink("shrink"), sink("pry")],
        [1, 40, 13],
        "pry",
        1,
    ),
    "the first computation of those that a message stops": (
        [
            of("shrink", "in", on_error="stop"),
            of("even", "in", on_error="stop"),
            sink("even"),
            sink("shrink"),
        ],
        [1, 2, 13],
        "shrink",
        2,
    ),
    "what does not fit stops where it is produced": (
        [of("shrink", "in", on_error="stop"), of("narrow", "shrink"), sink("narrow")],
        [1, 300, 2],
        "shrink",
        1,
    ),
    "what comes to a sink that stops is of an earlier message": (
        [of("even", "in", on_error="stop"), sink("even"), sink("in", encoder=coded, on_error="stop")],
        [0, -3, 13],
        "to-in",
        1,
    ),
}


@pytest.mark.parametrize("cut", [False, True], ids=["one frame", "a frame for each"])
@pytest.mark.parametrize(("nodes", "values", "computation", "index"), STOPS.values(), ids=STOPS)
def test_a_partition_stops_at_the_first_message_that_must_stop_it(
    nodes: list[Node], values: list[int], computation: str, index: int, *, cut: bool
) -> None:
    case = Example(nodes, values, {}).case((cut,) * len(values))
    with pytest.raises(StoppedError) as stopped:
        expected(case)
    assert stopped.value.computation == computation
    check(case, cache=kept_kernels())


MERGES: dict[str, Callable[[Stream[Any], Stream[Any]], Stream[Any]]] = {
    "with itself": lambda quotes, _: quotes.merge(quotes),
    "with what merges it": lambda quotes, orders: quotes.merge(orders).merge(quotes),
    "with what merges it, the other way round": lambda quotes, orders: quotes.merge(orders.merge(quotes)),
}


@pytest.mark.parametrize("merged", MERGES.values(), ids=MERGES)
def test_a_stream_is_merged_once(merged: Callable[[Stream[Any], Stream[Any]], Stream[Any]]) -> None:
    app = Application("graph")
    quotes, orders = (app.source(name, schema=Item, key="key") for name in ("quotes", "orders"))
    with pytest.raises(ApplicationError, match="quotes"):
        merged(quotes, orders)
