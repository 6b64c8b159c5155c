"""Where the parts of an application are, of whose services only Kafka and Redis run."""

from __future__ import annotations

from pathlib import Path

from bettong.config.connection_settings import KafkaConnection, RedisConnection
from bettong.edges.snapshot_stores import REDIS
from bettong.inspection.locations import Locations


def locations_of(
    kafka: KafkaConnection, redis: RedisConnection, *, state_dir: Path, frame_bytes_max: int
) -> Locations:
    """Snapshots are in Redis, and nothing is compiled."""
    return Locations(
        kafka=kafka,
        redis=redis,
        sender=None,
        compiled=False,
        kernel_cache=None,
        frame_bytes_max=frame_bytes_max,
        state_dir=state_dir,
        snapshots=REDIS,
    )
