"""What a service tells Prometheus, read by Prometheus' own parser."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Self
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

_ADDRESS = re.compile(r"metrics for Prometheus.*?address=(\S+)")
_ANSWER_S_MAX = 60.0
_ORDER = ("application", "source", "sink", "stage", "partition", "quantile", "state")


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

    def __getitem__(self, key: str | tuple[str, ...]) -> float:
        return self.values[(key,) if isinstance(key, str) else key]


def _ordered(labels: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(labels[label] for label in _ORDER if label in labels)
