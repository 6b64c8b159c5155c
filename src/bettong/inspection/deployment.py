"""What is known of a deployment at a moment: its services, how far its logs are folded, and what is unknown.

Facts from three sides: processes (of a suite on this machine), Redis (what services say), Kafka (where logs end). One
that does not answer takes away what only it knows, never the rest. `bettong status` shows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bettong.identifiers import PartitionId
from bettong.inspection.accounts import AccountLine, account_lines
from bettong.inspection.computations import ComputationLine, computation_lines
from bettong.inspection.overview import (
    Overview,
    PartitionRow,
    Record,
    StageSummary,
    is_folded,
    overview,
    partition_rows,
    service_of,
    stages,
    stands_still,
)
from bettong.inspection.queues import Queues, queues
from bettong.inspection.services import RUNNING, ServiceRow
from bettong.inspection.unmeasured import MeasureKind, unmeasured
from bettong.metrics import STANDBY
from bettong.services import CONSOLE, RECEIVER

Offsets = Mapping[PartitionId, int]


@dataclass(frozen=True, slots=True)
class Logs:
    """Where the logs of the stages begin and end."""

    begins: Offsets
    ends: Offsets


@dataclass(frozen=True, slots=True)
class DeploymentAnswers:
    """What services (by name) and partitions have said, and where logs end; `logs` is None where nobody was asked.

    `slots`: which one holds each partition, under the resident schedule, and `incarnations`: which of its tasks, one
    after the other, is at work in each slot. `silent`: of kafka and redis those that do
    not answer, and why.
    """

    live: Mapping[str, Record] = field(default_factory=dict)
    partitions: Mapping[PartitionId, Record] = field(default_factory=dict)
    logs: Logs | None = None
    slots: Mapping[PartitionId, int] = field(default_factory=dict)
    incarnations: Mapping[int, int] = field(default_factory=dict)
    silent: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Inspection:
    """`unknown`: what does not answer, and so what is not known, in a line each. `away`: of kafka and redis those.

    `incarnations`: see DeploymentAnswers. `not_measured`: what nobody measures, so that its numbers are missing.
    """

    application: str
    services: list[ServiceRow]
    overview: Overview
    stages: list[StageSummary]
    partitions: list[PartitionRow]
    unknown: list[str]
    accounts: list[AccountLine] = field(default_factory=list)
    computations: list[ComputationLine] = field(default_factory=list)
    away: tuple[str, ...] = ()
    incarnations: Mapping[int, int] = field(default_factory=dict)
    not_measured: tuple[MeasureKind, ...] = ()
    queues: Queues = field(default_factory=Queues)

    @property
    def goes_on(self) -> bool:
        """Whether all services run, all answer, and no partition stands still or waits for a lost frame.

        A console looks on: whether it runs changes nothing.
        """
        runs = all(row.state in {RUNNING, STANDBY} for row in self.services if row.name != CONSOLE)
        held_up = self.overview.gaps or any(map(stands_still, self.partitions))
        return runs and not self.unknown and not held_up


def inspection(application: str, services: list[ServiceRow], answers: DeploymentAnswers) -> Inspection:
    """What the answers amount to."""
    logs = answers.logs
    begins, ends = (logs.begins, logs.ends) if logs is not None else ({}, None)
    # What Kafka does not say now was said by it before: old metrics of lag are no better than a guess.
    known = "kafka" not in answers.silent
    partitions = partition_rows(
        answers.live, answers.partitions, begins=begins, ends=ends, slots=answers.slots, lag_known=known
    )
    if "redis" in answers.silent:  # where logs end alone says nothing of who folds them, and how far
        partitions = []
    accounts = account_lines(answers.partitions, partitions, are_ends_known=ends is not None)
    return Inspection(
        application=application,
        services=services,
        overview=overview(answers.live, answers.partitions, partitions),
        stages=stages(partitions),
        partitions=partitions,
        unknown=[f"{why}; what only it knows is left out" for why in answers.silent.values()],
        accounts=accounts,
        computations=computation_lines(answers.partitions if is_folded(answers.live) else {}, accounts),
        away=tuple(answers.silent),
        incarnations=answers.incarnations,
        not_measured=unmeasured(
            [record for record in answers.live.values() if service_of(record) == RECEIVER.name],
            answers.partitions.values(),
        ),
        queues=queues(answers.live, partitions),
    )
