"""The alert rules: as they lie beside the chart, and as it renders them."""

import re
from collections.abc import Mapping
from typing import Any

import yaml

from tests.kubernetes.chart import FOLDER, NAMESPACE, REAL, RELEASE, Chart, Values
from tests.kubernetes.value_sets import merged

WATCHED: Mapping[str, Any] = merged(
    REAL,
    {"metrics": {"enabled": True}, "serviceMonitor": {"enabled": True}, "alerts": {"enabled": True}},
)
# What the chart's ServiceMonitor has Prometheus give to each series.
LABELS = {"namespace": NAMESPACE, "app_kubernetes_io_instance": RELEASE}
SOURCE = yaml.safe_load((FOLDER / "files" / "alerts.yaml").read_text())
NAMES = [each["alert"] for each in SOURCE]
# What each means and what to do first, for who is woken by it.
DESCRIPTIONS: Mapping[str, str] = {each["alert"]: each["annotations"]["description"] for each in SOURCE}

_COMPARISON = re.compile(r"\s*(>|<|==)\s*[\d.]+$")
_ABSENT = re.compile(r"absent\((.*?)\)")

Rules = Mapping[str, Any]


def rules(chart: Chart, alerts: Values | None = None, values: Values | None = None) -> Rules:
    """What a PrometheusRule hands to Prometheus. `alerts`: of the values; `values`: others."""
    given = merged(WATCHED, {"alerts": alerts or {}}, values or {})
    found = chart.render(given).of("PrometheusRule")[""]["spec"]
    assert isinstance(found, Mapping)
    return found


def each_rule(found: Rules) -> list[dict[str, Any]]:
    return [rule for group in found["groups"] for rule in group["rules"]]


def without_comparison(expression: str) -> list[str]:
    """What an alert looks at, before it compares: each of it must be there."""
    if absent := _ABSENT.findall(expression):
        return list(absent)
    bare, count = _COMPARISON.subn("", expression)
    assert count == 1, f"no comparison at the end: {expression}"
    return [bare]
