"""The graph of an application in words; tests of each kind of computation look at what it says of theirs."""

from __future__ import annotations

import io

from rich.console import Console

from bettong.application.streams import Stream, WindowedStream
from bettong.cli.check import tree
from bettong.inspection.application_graph import application_graph
from bettong.worker.operators.kinds import _KINDS
from tests.samples.worker import meters


def test_a_stage_says_what_comes_in_what_is_computed_and_where_it_leads() -> None:
    first, second = application_graph(meters())
    assert [(each.kind, each.name) for each in first.inputs] == [("source", "readings"), ("source", "limits")]
    assert [(each.kind, each.name) for each in first.computations] == [("stateful", "tally")]
    assert {(each.kind, each.name) for each in first.outputs} == {
        ("sink", "totals"),
        ("to stage", second.name),
    }
    assert [each.kind for each in second.inputs] == ["keyed"]
    assert first.topic == f"meters.stage.{first.name}"


def test_each_kind_of_computation_says_which_method_makes_it() -> None:
    methods = {*dir(Stream), *dir(WindowedStream)}
    named = {kind.__name__: getattr(kind, "method", None) for kind in _KINDS}
    assert {name: method for name, method in named.items() if method not in methods} == {}


def test_the_command_shows_each_entry_on_a_line_of_its_own() -> None:
    shown = io.StringIO()
    Console(file=shown, width=300).print(tree(meters()))
    lines = shown.getvalue().splitlines()
    entries = [
        each
        for stage in application_graph(meters())
        for each in (*stage.inputs, *stage.computations, *stage.outputs)
    ]
    assert len(lines) == 1 + len(application_graph(meters())) + len(entries)
    for entry in entries:
        assert any(f"{entry.kind} {entry.name}: {entry.text}" in line for line in lines)
