"""What a live metric is, and by which name Prometheus knows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Metric:
    """One live metric: its name, its unit, and what it says."""

    name: str
    unit: str
    meaning: str


class Scope(StrEnum):
    """The kind of live record that has a metric."""

    SERVICE = "every service"
    SENDER = "sender"
    PROCESSOR = "processor"
    PARTITION = "processor, for each partition"
    COMPUTATION = "processor, for each computation and output of a partition"
    RECEIVER = "receiver"


@dataclass(frozen=True, slots=True)
class Series:
    """A metric in Prometheus, by its conventions (prometheus.io/docs/practices/naming): in base units.

    `labels`: of the parts after the metric's name, as in `messages/SINK`; omitted if there are none. A `_total` is a
    counter; one of HISTOGRAMS is a histogram, with the series `<name>_bucket`, `<name>_sum` and `<name>_count`; all
    others are gauges. `per`: units of the metric in one unit of the series. `part`: the part of a JSON metric, and
    `says`: its meaning.
    """

    name: str
    metric: Metric
    scope: Scope
    labels: tuple[str, ...] = ()
    per: float = 1.0
    part: str = ""
    says: str = ""

    @property
    def meaning(self) -> str:
        """Its meaning, in words."""
        return self.says or self.metric.meaning


# Series that an endpoint adds: name, labels, meaning.
BESIDE: Mapping[str, tuple[str, str]] = {
    "bettong_service_info": (
        "application, instance, service, version",
        "always 1: whose metrics these are",
    ),
    "bettong_state": ("service, state", "1 for the state that the service is in, 0 for the others"),
    "bettong_heartbeat_age_seconds": (
        "service",
        "since Redis took the service's live record; no sample before the first. Grows while Redis is away",
    ),
    "bettong_partition_metrics_readable": (
        "",
        "1 when Redis gave the processor the metrics of partitions for this scrape; 0: they are left out",
    ),
    "bettong_account_differences": (
        "stage",
        (
            "how much does not add up in the accounts of a stage, as `bettong status --accounts` names it; what is"
            " missing between stages once nothing has moved for 5 s. Of a moment: what stays is a loss, or a mistake"
        ),
    ),
}
