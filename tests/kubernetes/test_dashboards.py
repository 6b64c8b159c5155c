"""Dashboards: ConfigMaps that Grafana's sidecar finds, and panels that say what they show and in which unit."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.kubernetes.chart import REAL, Chart
from tests.kubernetes.dashboards import DASHBOARDS, panels
from tests.kubernetes.value_sets import MATRIX, merged

OURS = pytest.mark.parametrize("name", DASHBOARDS)
# The questions of an operator, in the order in which they come.
QUESTIONS = [
    "Is it alive?",
    "Where is it slow?",
    "Who holds it up?",
    "Is anything lost?",
    "What went wrong?",
]
# Of Grafana's own; `count:messages/s` is a unit of ours.
UNITS = {"s", "bytes", "none", "bool_yes_no", "percentunit"}


def units(panel: dict[str, Any]) -> Iterator[str]:
    """Of a panel, or of each column of a table."""
    if panel["type"] == "table":
        for override in panel["fieldConfig"]["overrides"]:
            yield from (each["value"] for each in override["properties"] if each["id"] == "unit")
    else:
        yield panel["fieldConfig"]["defaults"]["unit"]


def test_each_is_a_config_map_that_the_sidecar_finds(chart: Chart) -> None:
    found = chart.render(MATRIX["full-burstable"]).of("ConfigMap")
    for name, dashboard in DASHBOARDS.items():
        each = found[f"dashboard-{name}"]
        assert each["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert each["metadata"]["annotations"] == {"grafana_folder": "Bettong"}
        assert {key: json.loads(text) for key, text in each["data"].items()} == {
            f"bettong-{name}.json": dashboard
        }


def test_without_the_switch_there_is_none(chart: Chart) -> None:
    without = merged(REAL, {"metrics": {"enabled": True}})
    assert not any("dashboard" in name for name in chart.render(without).of("ConfigMap"))


def test_the_overview_answers_the_questions_in_their_order() -> None:
    assert [row["title"] for row in panels(DASHBOARDS["overview"], rows=True)] == QUESTIONS


@OURS
def test_each_panel_says_what_it_shows_in_a_unit(name: str) -> None:
    for panel in panels(DASHBOARDS[name]):
        assert panel["title"]
        assert panel["description"].endswith((".", "`."))
        found = list(units(panel))
        assert len(found) == (len(panel["targets"]) if panel["type"] == "table" else 1)
        assert all(unit in UNITS or re.fullmatch(r"count:\w+(/s)?", unit) for unit in found), panel["title"]
        assert all(target["legendFormat"] for target in panel["targets"]), panel["title"]


@OURS
def test_panels_lie_beside_each_other_and_never_on_each_other(name: str) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARDS[name]["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken
        assert max(x for x, _ in cells) < 24
        taken |= cells


@OURS
def test_each_dashboard_leads_to_the_others(name: str) -> None:
    links = {each["url"].removeprefix("/d/bettong-") for each in DASHBOARDS[name]["links"]}
    assert links == DASHBOARDS.keys() - {name}
    assert DASHBOARDS[name]["uid"] == f"bettong-{name}"
