"""The harness of the chart's values: what its schema lets through is rendered, or refused in a sentence."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from random import Random
from typing import Any

import yaml

from tests.fuzz.harness import Harness
from tests.kubernetes.chart import FOLDER, REAL, CallError, Chart
from tests.kubernetes.value_sets import WAYS

_NUMBERS: tuple[Any, ...] = (0, 1, -1, 3, 2**31, 2**63, 1.5)
_TEXTS = (
    "",
    " ",
    "a",
    "a: b",
    "- x",
    "{{ .Values }}",
    "'",
    '"',
    "é",
    "x" * 300,
    "a\nb: c",
    "#",
    "0",
    "true",
    "null",
)
_RIGHT = ("1Gi", "500m", "s3://b/f", "host:9092")
_CONTAINERS: tuple[Any, ...] = ([], ["a"], [None], [{}], {}, {"a": "b"}, {"a": None})
_ODD: tuple[Any, ...] = (None, True, False, *_NUMBERS, *_TEXTS, *_RIGHT, *_CONTAINERS)
_REFUSED = ("values don't meet the specifications of the schema", "Error: execution error at (")


def values_of(data: bytes) -> dict[str, Any]:
    """Values of one of the ways to deploy, with some leaves changed: the same for the same bytes."""
    random = Random(data)
    defaults = yaml.safe_load((FOLDER / "values.yaml").read_text())
    values = copy.deepcopy({**REAL, **random.choice(list(WAYS.values()))})
    for _ in range(random.choice((1, 1, 2, 4))):
        path = random.choice(list(_paths(defaults)))
        section = values
        for part in path[:-1]:
            if not isinstance(section.get(part), dict):
                section[part] = {}
            section = section[part]
        section[path[-1]] = copy.deepcopy(random.choice(_ODD))
    return values


def read_values(data: bytes) -> None:
    """What helm makes of them: objects, or a refusal in a sentence."""
    values = values_of(data)
    try:
        Chart().render(values)
    except CallError as error:
        if not any(word in str(error) for word in _REFUSED):
            raise AssertionError(f"{json.dumps(values)}\n{error}") from None


def _paths(values: dict[str, Any], before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, value in values.items():
        yield (*before, name)
        if isinstance(value, dict):
            yield from _paths(value, (*before, name))


def _seeds() -> Iterator[bytes]:
    yield b"chart"


HARNESSES = (Harness("chart-values", read_values, _seeds),)
