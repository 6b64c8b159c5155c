"""An application as boxes and arrows."""

from __future__ import annotations

from pathlib import Path

import pytest

from bettong.inspection.flow_graph import flow_graph
from bettong.inspection.live.application import loaded_plan

EXAMPLES = Path(__file__).parents[2] / "examples"
APPLICATIONS = sorted(
    path.name for path in EXAMPLES.glob("*.py") if "= bettong.Application(" in path.read_text()
)


def arrows(example: str) -> set[tuple[str, str, str]]:
    graph = flow_graph(loaded_plan(str(EXAMPLES / example)))
    return {(each.start, each.end, each.log) for each in graph.arrows}


def test_a_stream_that_is_keyed_anew_leads_through_the_log_of_its_stage() -> None:
    assert arrows("visits.py") == {
        ("source:clicks", "computation:Visits", "clicks"),
        ("computation:Visits", "sink:visits", ""),
        ("source:clicks", "computation:Hour", "clicks-by-page"),
        ("computation:Hour", "sink:hours", ""),
    }


def test_what_is_computed_and_keyed_anew_leads_from_the_computation() -> None:
    assert ("computation:bidding", "computation:average", "bidding-by-category") in arrows("nexmark/q4.py")


def test_a_join_has_an_arrow_from_each_side() -> None:
    assert {start for start, end, _ in arrows("trades_and_quotes.py") if end == "computation:cost"} == {
        "source:trades",
        "source:quotes",
    }


@pytest.mark.parametrize("example", APPLICATIONS)
def test_every_arrow_of_an_example_begins_and_ends_at_a_box_and_every_box_has_one(example: str) -> None:
    graph = flow_graph(loaded_plan(str(EXAMPLES / example)))
    ids = {box.id for box in graph.boxes}
    met = {end for arrow in graph.arrows for end in (arrow.start, arrow.end)}
    assert ids == met
    assert {box.stage for box in graph.boxes} - {""} <= set(graph.stages)
