"""Objects of operators fit the operators' own schemas, down to the name of each field."""

import copy
from collections.abc import Sequence
from typing import Any

import jsonschema
import pytest

from tests.kubernetes.chart import Chart, Object
from tests.kubernetes.operator_kinds import FOLDER, KINDS, SOURCES, validate
from tests.kubernetes.value_sets import MATRIX

WAYS = {
    "Certificate": "many-burstable",
    "PrometheusRule": "full-burstable",
    "ScaledObject": "full-burstable",
    "ServiceMonitor": "full-burstable",
}
FAULTS: list[tuple[str, Sequence[str | int], Any]] = [
    ("Certificate", ["spec", "dnsName"], ["a"]),
    ("Certificate", ["spec", "issuerRef", "nam"], "ours"),
    ("Certificate", ["spec", "privateKey", "size"], "256"),
    ("Certificate", ["spec", "privateKey", "rotationPolicy"], "Sometimes"),
    ("Certificate", ["apiVersion"], "cert-manager.io/v1alpha1"),
    ("PrometheusRule", ["spec", "group"], []),
    ("PrometheusRule", ["spec", "groups", 0, "rules", 0, "annotation"], {}),
    ("PrometheusRule", ["spec", "groups", 0, "rules", 0, "for"], "two minutes"),
    ("ScaledObject", ["spec", "minReplicas"], 1),
    ("ScaledObject", ["spec", "scaleTargetRef", "namespace"], "space"),
    ("ScaledObject", ["spec", "triggers", 0, "type"], "metric-api"),
    ("ScaledObject", ["spec", "triggers", 0, "metadata", "target"], "500"),
    ("ScaledObject", ["spec", "triggers", 0, "metadata", "targetValue"], 500),
    ("ScaledObject", ["spec", "triggers", 0, "metadata", "format"], "text"),
    ("ServiceMonitor", ["spec", "endpoint"], []),
    ("ServiceMonitor", ["spec", "endpoints", 0, "intervall"], "15s"),
    ("ServiceMonitor", ["spec", "endpoints", 0, "scrapeTimeout"], "ten seconds"),
]


def rendered(chart: Chart, kind: str) -> Object:
    (found,) = chart.render(MATRIX[WAYS[kind]]).of(kind).values()
    return copy.deepcopy(found)


@pytest.mark.parametrize("kind", KINDS)
def test_an_object_fits_the_schema_of_its_operator(chart: Chart, kind: str) -> None:
    validate(rendered(chart, kind))


@pytest.mark.parametrize(
    ("kind", "path", "value"), FAULTS, ids=[".".join(map(str, [kind, *path])) for kind, path, _ in FAULTS]
)
def test_a_field_that_there_is_not_is_refused(
    chart: Chart, kind: str, path: Sequence[str | int], value: Any
) -> None:
    each: Any = rendered(chart, kind)
    section = each
    for step in path[:-1]:
        section = section[step]
    section[path[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        validate(each)


def test_a_trigger_without_an_address_is_refused(chart: Chart) -> None:
    scaled = rendered(chart, "ScaledObject")
    del scaled["spec"]["triggers"][0]["metadata"]["url"]
    with pytest.raises(jsonschema.ValidationError, match="'url' is a required property"):
        validate(scaled)


def test_every_schema_says_where_it_comes_from() -> None:
    for source in SOURCES:
        assert (
            f'"$comment":"{source.module} {source.path}, Apache-2.0"'
            in (FOLDER / f"{source.kind}.json").read_text()
        )
