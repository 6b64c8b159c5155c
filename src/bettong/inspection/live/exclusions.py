"""Reads which records an application's stages leave out of their folds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bettong.application.plan import Plan
from bettong.edges.exclusion_log import ExclusionLog
from bettong.edges.kafka_log import LogAdmin
from bettong.identifiers import PartitionId
from bettong.inspection.locations import Locations
from bettong.topics import exclusions_topic
from bettong.worker.exclusions import Exclusion


def exclusions_of(
    plan: Plan, where: Locations, partitions: Iterable[PartitionId]
) -> dict[PartitionId, Mapping[int, Exclusion]]:
    """The records that the fold of each partition leaves out, by offset. Raises LogError.

    Empty if an older version's processor made no topic for that.
    """
    with LogAdmin(where.kafka) as admin:
        if not admin.topics(exclusions_topic(plan.application)):
            return {each: {} for each in partitions}
    exclusions = ExclusionLog(where.kafka, plan.application, frame_bytes_max=where.frame_bytes_max)
    try:
        exclusions.refresh()
    finally:
        exclusions.close()
    return {each: dict(exclusions.known(each)) for each in partitions}
