"""The addresses of an application's parts. Callers provide them: the command line, or a service from its settings."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from bettong.config.connection_settings import KafkaConnection, RedisConnection

if TYPE_CHECKING:
    from bettong.worker.kernel import KernelCache  # loads Numba


@dataclass(frozen=True, slots=True)
class Locations:
    """Addresses, and the services' settings. `sender` is None where only a flag can name it."""

    kafka: KafkaConnection
    redis: RedisConnection
    sender: str | None
    compiled: bool
    kernel_cache: KernelCache | None
    frame_bytes_max: int
    state_dir: Path
    snapshots: str
    state_key: bytes | None = field(default=None, repr=False)
