"""The stored versions of reference tables, for folds by inspection."""

from __future__ import annotations

from dataclasses import dataclass

from bettong.edges.redis_store import RedisStore
from bettong.edges.snapshot_stores import reference_store
from bettong.identifiers import ReferenceVersion
from bettong.inspection.locations import Locations


@dataclass(frozen=True, slots=True)
class StoredReferences:
    """See `worker.references.versions.StoredVersions`. Connects for each read: a fold makes few, or none."""

    application: str
    where: Locations

    def load(self, version: ReferenceVersion) -> bytes | None:
        """See StoredVersions."""
        with RedisStore(self.where.redis, self.application) as redis:
            return reference_store(self.where.snapshots, self.application, redis).load(version)

    def versions(self, series: str) -> list[ReferenceVersion]:
        """See StoredVersions."""
        with RedisStore(self.where.redis, self.application) as redis:
            return reference_store(self.where.snapshots, self.application, redis).versions(series)
