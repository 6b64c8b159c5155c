"""The form of dashboards: rows of panels with PromQL, as the JSON that Grafana imports. What they show is elsewhere."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# What stands as `${release}` in an expression: the labels that the chart's ServiceMonitor gives to each series. Where
# Prometheus was told of Bettong in another way there are no such labels, and an empty choice selects just that.
RELEASE = 'namespace="$namespace",app_kubernetes_io_instance="$release"'
# As `${stages}`: the same of the stages that are chosen.
STAGES = f'{RELEASE},stage=~"$stage"'

_COLUMNS = 24  # of Grafana's grid
_HEIGHT = 8
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_SCHEMA_VERSION = 38  # of Grafana 10; newer ones read older forms

_Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Query:
    """PromQL, and what its series are called: `{{stage}}` is a label. In a table the name of a column and its unit."""

    expression: str
    legend: str
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """`about`: what one reads from it, shown beside its title. `unit`: as Grafana names it; `count:x` is our own x.

    `kind`: timeseries, stat or table. `empty`: what it says where there is nothing. `decimals` of a stat.
    """

    title: str
    about: str
    unit: str
    queries: Sequence[Query]
    kind: str = "timeseries"
    columns: int = 8
    empty: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """Panels under a title: a question."""

    title: str
    panels: Sequence[Panel]


@dataclass(frozen=True, slots=True)
class Dashboard:
    """`name`: of its file, and in its address. `variables`: more that one chooses, name to query."""

    name: str
    title: str
    rows: Sequence[Row]
    variables: Mapping[str, str]


def rendered(dashboard: Dashboard, links: Mapping[str, str]) -> str:
    """The JSON of a dashboard. `links`: names to titles of those that it leads to."""
    return json.dumps(
        {
            "uid": f"bettong-{dashboard.name}",
            "title": dashboard.title,
            "tags": ["bettong"],
            "schemaVersion": _SCHEMA_VERSION,
            "editable": True,
            "refresh": "30s",
            "time": {"from": "now-1h", "to": "now"},
            "templating": {"list": _variables(dashboard.variables)},
            "links": [_link(name, title) for name, title in links.items()],
            "panels": _panels(dashboard.rows),
        },
        indent=1,
    )


def _link(name: str, title: str) -> _Json:
    return {
        "type": "link",
        "title": title,
        "url": f"/d/bettong-{name}",
        "includeVars": True,
        "keepTime": True,
    }


def _variables(more: Mapping[str, str]) -> list[_Json]:
    return [
        {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"},
        _variable("namespace", "label_values(bettong_service_info, namespace)"),
        _variable(
            "release",
            'label_values(bettong_service_info{namespace="$namespace"}, app_kubernetes_io_instance)',
        ),
        *(
            {
                **_variable(name, query.replace("${release}", RELEASE)),
                "multi": True,
                "includeAll": True,
                "allValue": ".*",
                "current": {"text": ["All"], "value": ["$__all"]},
            }
            for name, query in more.items()
        ),
    ]


def _variable(name: str, query: str) -> _Json:
    return {
        "name": name,
        "label": name.capitalize(),
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": query, "refId": name},
        "definition": query,
        "refresh": 2,  # whenever the time span changes
        "sort": 1,
    }


def _panels(rows: Sequence[Row]) -> list[_Json]:
    found: list[_Json] = []
    y = 0
    for row in rows:
        found.append(
            {
                "id": len(found) + 1,
                "type": "row",
                "title": row.title,
                "collapsed": False,
                "panels": [],
                "gridPos": {"x": 0, "y": y, "w": _COLUMNS, "h": 1},
            }
        )
        y, x = y + 1, 0
        for panel in row.panels:
            if x + panel.columns > _COLUMNS:
                y, x = y + _HEIGHT, 0
            place = {"x": x, "y": y, "w": panel.columns, "h": _HEIGHT}
            found.append({"id": len(found) + 1, "gridPos": place, **_panel(panel)})
            x += panel.columns
        y += _HEIGHT
    return found


def _panel(panel: Panel) -> _Json:
    defaults: _Json = {"unit": panel.unit, "min": 0}
    if panel.empty:
        defaults["noValue"] = panel.empty
    found: _Json = {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.about,
        "datasource": _SOURCE,
        "targets": [_target(panel, index, query) for index, query in enumerate(panel.queries)],
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": _options(panel.kind),
    }
    if panel.kind == "timeseries":
        defaults["custom"] = {"lineWidth": 1, "fillOpacity": 5, "showPoints": "never"}
    if panel.kind == "table":
        found["fieldConfig"]["overrides"] = [
            {
                "matcher": {"id": "byName", "options": query.legend},
                "properties": [{"id": "unit", "value": query.unit}],
            }
            for query in panel.queries
        ]
        found["transformations"] = _joined(panel.queries)
    return found


def _target(panel: Panel, index: int, query: Query) -> _Json:
    expression = query.expression.replace("${release}", RELEASE).replace("${stages}", STAGES)
    found: _Json = {
        "refId": _ref(index),
        "datasource": _SOURCE,
        "expr": expression,
        "legendFormat": query.legend,
    }
    if panel.kind in {"table", "stat"}:
        found |= {
            "instant": True,
            "range": False,
            "format": "table" if panel.kind == "table" else "time_series",
        }
    return found


def _ref(index: int) -> str:
    return chr(ord("A") + index)


def _options(kind: str) -> _Json:
    if kind == "stat":
        return {
            "reduceOptions": {"calcs": ["lastNotNull"]},
            "textMode": "value_and_name",
            "colorMode": "none",
        }
    if kind == "table":
        return {"showHeader": True, "cellHeight": "sm"}
    return {
        "legend": {"displayMode": "list", "placement": "bottom"},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }


def _joined(queries: Sequence[Query]) -> list[_Json]:
    """One row for each set of labels, a column for each query."""
    names = {f"Value #{_ref(index)}": query.legend for index, query in enumerate(queries)}
    return [
        {"id": "merge", "options": {}},
        {"id": "organize", "options": {"excludeByName": {"Time": True}, "renameByName": names}},
    ]
