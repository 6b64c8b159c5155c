"""Messages that clients have sent: the log's records of stages that sources lead to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bettong.application.plan import Plan, Stage
from bettong.edges.kafka_log import LogAdmin, Record
from bettong.edges.log_stretch import stretch
from bettong.edges.partitioning_log import partitions_in_use
from bettong.inspection.locations import Locations
from bettong.routing import partition_of
from bettong.schema.key_types import KeyValue
from bettong.topics import stage_topic


def source_stages(plan: Plan) -> list[Stage]:
    """The stages that sources lead to."""
    names = {plan.stage_of(source.name).name for source in plan.sources}
    return [stage for stage in plan.stages if stage.name in names]


def with_joins(plan: Plan, stages: Iterable[Stage]) -> list[Stage]:
    """These stages, and those that join with reference tables: their logs name the versions."""
    names = {stage.name for stage in stages} | {stage.name for stage in plan.stages if stage.references}
    return [stage for stage in plan.stages if stage.name in names]


def source_records(
    plan: Plan, stages: Iterable[Stage], where: Locations, key: KeyValue | None = None
) -> Iterator[Record]:
    """All current records of these stages; with `key`, those of its partition.

    After a repartitioning, records of all partitions: the key was in others before. Records of a partition are in
    order. Raises LogError.
    """
    topics = [stage_topic(plan.application, stage.name) for stage in stages]
    with LogAdmin(where.kafka) as admin:
        beginnings, ends = admin.beginnings(topics), admin.ends(topics)
        used = partitions_in_use(admin, where.kafka, plan.application, topics[0])
    # Records from before the last repartitioning may be in any partition.
    if key is not None and not used.generation:
        partition = partition_of(key, used.partitions)
        beginnings = {each: offset for each, offset in beginnings.items() if each.partition == partition}
    return stretch(where.kafka, beginnings, ends, frame_bytes_max=where.frame_bytes_max)
