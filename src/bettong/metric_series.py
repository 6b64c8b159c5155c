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
    """Whose record holds a metric."""

    SERVICE = "every service"
    SENDER = "sender"
    PROCESSOR = "processor"
    PARTITION = "processor, for each partition"
    COMPUTATION = "processor, for each computation and output of a partition"
    RECEIVER = "receiver"


@dataclass(frozen=True, slots=True)
class Series:
    """A metric as Prometheus knows it, by its conventions (prometheus.io/docs/practices/naming): in base units.

    `labels`: what stands behind the metric's name, `messages/SINK`, and is left out when nothing does. A `_total` is
    a counter; one of HISTOGRAMS is one, of which the series are `<name>_bucket`, `<name>_sum` and `<name>_count`; all
    others are gauges. `per`: units of the metric in one of the series. `part`: of a metric that is JSON, what of it,
    and `says`: its meaning.
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
        """What it says, in words."""
        return self.says or self.metric.meaning


# What an endpoint adds of its own: name, labels, what it says.
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
