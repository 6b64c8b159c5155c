"""Forgets how far an application was folded, when its states are replaced or deleted while nothing runs."""

from __future__ import annotations

from bettong.edges.redis_store import LiveMetrics, RedisLead, RedisStore

# The constructor of the lead needs one; it is not held here.
_NO_TTL_MS = 1


def forget_progress(store: RedisStore, *, by: str) -> None:
    """Forgets the reports of all partitions, and has Spark forget its checkpoint. `by`: what replaces the states.

    A checkpoint is forgotten when another instance was the last to fold: the next start goes on from snapshots alone.
    Reports are of other states: what they say of offsets and of what is due no longer holds. Raises StoreError.
    """
    RedisLead(store, ttl_ms=_NO_TTL_MS).folds(by)
    LiveMetrics(store).forget_partitions()
