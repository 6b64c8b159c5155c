"""An application and its locations: found once when a DataFrame is made, and sent to Spark's tasks.

A task loads the application from its file, once a process. So the file must have the same path on every machine that
runs tasks, as for the processor.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypedDict

from bettong.application.plan import Plan
from bettong.edges.kafka_log import LogAdmin
from bettong.edges.partitioning_log import partitions_in_use
from bettong.errors import ApplicationError, LogError
from bettong.identifiers import PartitionId, TopicPartition
from bettong.inspection.live.application import loaded_plan
from bettong.inspection.states import LogEnds
from bettong.local.locations import FoundLocations, found_locations
from bettong.topics import stage_of_topic
from bettong.worker.stage_program import StageProgram, program

# Where `bettong up` writes the record of the suite that it runs.
HERE = Path(".bettong")


class WhereOptions(TypedDict, total=False):
    """Where an application runs: `kafka`, host:port; `redis`, a URL; `directory`, the folder of a suite with both."""

    kafka: str
    redis: str
    directory: str | Path


@dataclass(frozen=True, slots=True)
class LocatedApplication:
    """An application, by a path that is valid on every machine, and its locations."""

    application: str
    found: FoundLocations

    def plan(self) -> Plan:
        """Its stages. Raises ApplicationError."""
        return loaded_plan(self.application)

    def program(self, stage: str) -> StageProgram:
        """A stage ready to run in this process. Takes seconds the first time where functions are compiled."""
        return _program(self, stage)

    def generation(self, plan: Plan, logs: dict[TopicPartition, LogEnds]) -> dict[TopicPartition, LogEnds]:
        """Restricts stage logs to records since the last repartitioning, and to partitions in use. Raises LogError."""
        application = plan.application
        with LogAdmin(self.found.kafka) as admin:
            used = partitions_in_use(admin, self.found.kafka, application, next(iter(logs)).topic)
        return {
            each: LogEnds(
                max(
                    log.begin,
                    used.begin_of(PartitionId(stage_of_topic(application, each.topic), each.partition)),
                ),
                log.end,
            )
            for each, log in logs.items()
            if each.partition < used.partitions
        }

    def logs(self, topics: list[str]) -> dict[TopicPartition, LogEnds]:
        """Where the log of each partition begins and ends. Raises LogError, also for a topic that does not exist."""
        with LogAdmin(self.found.kafka) as admin:
            if missing := sorted(set(topics) - set(admin.topics(""))):
                raise LogError(
                    f"Kafka at {self.found.kafka.bootstrap} has no topic {missing[0]}: {self.application} has not run"
                    " there; give the file of the application that has, or another kafka="
                )
            begins, ends = admin.beginnings(topics), admin.ends(topics)
        return {each: LogEnds(begins[each], end) for each, end in ends.items()}


def located(app: str | Path, where: WhereOptions) -> tuple[LocatedApplication, Plan]:
    """Finds where an application runs, and loads its plan.

    Raises ApplicationError, LocalError when nothing says where it runs, and SettingsError.
    """
    if not isinstance(app, str | Path):
        raise ApplicationError(
            f"app={app!r:.80}: expected the path of the application's file, for Spark's tasks load it from there"
        )
    path, colon, name = str(app).partition(":")
    reference = f"{Path(path).resolve()}{colon}{name}"
    plan = loaded_plan(reference)
    directory = Path(where.get("directory", HERE))
    found = found_locations(
        reference, plan.application, directory, kafka=where.get("kafka"), redis=where.get("redis")
    )
    return LocatedApplication(reference, found), plan


@lru_cache(maxsize=64)
def _program(of: LocatedApplication, stage: str) -> StageProgram:
    where = of.found.on_this_machine()
    return program(
        of.plan().stage(stage),
        compiled=where.compiled,
        cache=where.kernel_cache,
        state_key=where.state_key,
    )
