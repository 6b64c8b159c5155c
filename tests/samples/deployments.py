"""What services and Kafka say of a deployment, for tests that need it another way than it was recorded."""

from __future__ import annotations

from collections.abc import Mapping

from bettong.identifiers import PartitionId
from bettong.inspection.deployment import DeploymentAnswers, Logs, inspection
from bettong.inspection.measures import Measures, TimedInspection, measures
from bettong.inspection.services import remote_rows
from bettong.inspection.trends import Trends, trends

Records = dict[str, dict[str, str]]
Partitions = dict[PartitionId, dict[str, str]]


def services(**changed: Mapping[str, object]) -> Records:
    """A sender, a processor and a receiver that run, with these metrics on top of theirs."""
    plain = {"state": "running", "since": 1000, "age_s": 0.1, "ttl_s": 10}
    own = {"processor": {"lag": 0}}
    return {
        name: {
            key: str(value)
            for key, value in {"service": name, **plain, **own.get(name, {}), **changed.get(name, {})}.items()
        }
        for name in ("sender", "processor", "receiver")
    }


def partition(stage: str, number: int, **metrics: object) -> Partitions:
    """The record of one partition."""
    return {PartitionId(stage, number): {name: str(value) for name, value in metrics.items()}}


def moment(
    time_s: float,
    live: Records,
    partitions: Partitions,
    *,
    waiting: Mapping[PartitionId, int] | None = None,
    slots: Mapping[PartitionId, int] | None = None,
) -> TimedInspection:
    """What was found. `waiting`: records in the log of a partition that it has not folded, by default none."""
    ends = {
        each: int(record.get("offset", 0)) + (waiting or {}).get(each, 0)
        for each, record in partitions.items()
    }
    logs = Logs(dict.fromkeys(ends, 0), ends)
    answers = DeploymentAnswers(live, partitions, logs, slots or {})
    return TimedInspection(time_s, inspection("app", remote_rows(live), answers), answers)


def measured(*moments: TimedInspection) -> Measures:
    """Of the last of one or two moments."""
    known = Trends()
    for each in moments:
        known = trends(known, each.found, each.time_s)
    return measures(moments[-1], moments[0] if len(moments) > 1 else None, known)
