"""Texts in values that would be no text in YAML: rendered as they are, or refused by the value's name."""

import re
from functools import reduce
from typing import Any

import pytest
import yaml

from tests.kubernetes.chart import FOLDER, REAL, CallError, Chart
from tests.kubernetes.value_sets import WAYS, leaves, merged

REFUSED = re.compile("specifications of the schema|Error: execution error at ")


@pytest.mark.parametrize("way", ["bundled", "secrets", "full"])
def test_any_text_in_any_value_is_rendered_or_refused_in_a_sentence(chart: Chart, way: str) -> None:
    """Never an error of YAML, which names a line of a template instead of the value."""
    rendered = refused = 0
    defaults = yaml.safe_load((FOLDER / "values.yaml").read_text())
    for path in leaves(defaults):
        *sections, last = path.split(".")
        if not isinstance(reduce(dict.__getitem__, sections, defaults)[last], str):
            continue
        values: Any = {last: '"'}
        for part in reversed(sections):
            values = {part: values}
        try:
            chart.render(merged(REAL, WAYS[way], values))
            rendered += 1
        except CallError as error:
            if not REFUSED.search(str(error)):
                raise
            refused += 1
    assert rendered
    assert refused


def test_an_issuer_may_have_any_name(chart: Chart) -> None:
    for name in ("- x", "a, kind: b", "null"):
        found = chart.render({**REAL, "tls": {"certManager": {"issuerRef": {"name": name}}}})
        (certificate,) = found.of("Certificate").values()
        assert certificate["spec"]["issuerRef"]["name"] == name
