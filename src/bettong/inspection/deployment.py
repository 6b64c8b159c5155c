"""A deployment at a moment: its services, how far its logs are folded, and what is unknown.

Facts come from processes (of a suite on this machine), Redis (services' records) and Kafka (the ends of logs). If one
does not answer, only its own facts are missing. `bettong status` shows the result.
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
    """Where the logs of the stages begin and end. `ends_before`: where they ended before the reports were due that the
    records of partitions have; None while this is unknown.
    """

    begins: Offsets
    ends: Offsets
    ends_before: Offsets | None = None


@dataclass(frozen=True, slots=True)
class DeploymentAnswers:
    """The records of services (by name) and partitions, and where logs end; `logs` is None if Kafka was not asked.

    `slots`: the slot that holds each partition, under the resident schedule; `incarnations`: the number of each slot's
    current task. `silent`: which of kafka and redis do not answer, and why.
    """

    live: Mapping[str, Record] = field(default_factory=dict)
    partitions: Mapping[PartitionId, Record] = field(default_factory=dict)
    logs: Logs | None = None
    slots: Mapping[PartitionId, int] = field(default_factory=dict)
    incarnations: Mapping[int, int] = field(default_factory=dict)
    silent: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Inspection:
    """`unknown`: what does not answer, and what is unknown for that reason, a line each. `away`: of kafka and redis.

    `incarnations`: see DeploymentAnswers. `not_measured`: measurements that are switched off.
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

        The console does not count: no other service depends on it.
        """
        runs = all(row.state in {RUNNING, STANDBY} for row in self.services if row.name != CONSOLE)
        held_up = self.overview.gaps or any(map(stands_still, self.partitions))
        return runs and not self.unknown and not held_up


def inspection(application: str, services: list[ServiceRow], answers: DeploymentAnswers) -> Inspection:
    """The inspection that results from these answers."""
    logs = answers.logs
    # Without Kafka, reported lag is of an earlier moment: no better than a guess.
    known = "kafka" not in answers.silent
    partitions = partition_rows(
        answers.live,
        answers.partitions,
        begins=logs.begins if logs is not None else {},
        ends=logs.ends if logs is not None else None,
        ends_before=logs.ends_before if logs is not None else None,
        slots=answers.slots,
        lag_known=known,
    )
    if "redis" in answers.silent:  # the ends of logs alone do not show progress
        partitions = []
    accounts = account_lines(answers.partitions, partitions, are_ends_known=logs is not None)
    return Inspection(
        application=application,
        services=services,
        overview=overview(answers.live, answers.partitions, partitions),
        stages=stages(partitions),
        partitions=partitions,
        unknown=[f"{why}; its data is left out" for why in answers.silent.values()],
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
