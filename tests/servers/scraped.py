"""The metrics of a service, read by Prometheus' own parser."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Self
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

_ADDRESS = re.compile(r"metrics for Prometheus.*?address=(\S+)")
_ANSWER_S_MAX = 60.0
_ORDER = ("application", "source", "sink", "part", "stage", "partition", "le", "state")


class Scraped:
    """Values by name, or by name and the values of labels, in the order of `_ORDER`."""

    def __init__(self, text: str) -> None:
        self.kinds: dict[str, str] = {}
        self.values: dict[tuple[str, ...], float] = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                self.kinds[sample.name] = family.type
                self.values[sample.name, *_ordered(sample.labels)] = sample.value

    @classmethod
    def of(cls, log: Path) -> Self:
        """The metrics of the service that wrote this log, where it said last that it serves them."""
        return cls.at(_ADDRESS.findall(re.sub(r"\x1b\[[0-9;]*m", "", log.read_text()))[-1])

    @classmethod
    def at(cls, address: str) -> Self:
        """The metrics at host:port."""
        with urlopen(f"http://{address}/metrics", timeout=_ANSWER_S_MAX) as answer:
            return cls(answer.read().decode())

    def quantile(self, name: str, part: float) -> tuple[float, float]:
        """Between which bounds a quantile of a histogram without other labels lies."""
        buckets = sorted(
            (float(labels[0]), count)
            for (series, *labels), count in self.values.items()
            if series == f"{name}_bucket" and len(labels) == 1
        )
        target, below = part * buckets[-1][1], 0.0
        for bound, count in buckets:
            if count >= target:
                return below, bound
            below = bound
        raise AssertionError(f"{name} has counted nothing")

    def __getitem__(self, key: str | tuple[str, ...]) -> float:
        return self.values[(key,) if isinstance(key, str) else key]


def _ordered(labels: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(labels[label] for label in _ORDER if label in labels)
