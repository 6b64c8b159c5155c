"""The states of an application in its snapshots. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bettong.frames.key_values import key_text
from bettong.schema.key_types import KeyValue
from bettong.worker.partition import PartitionWorker


@dataclass(frozen=True, slots=True)
class LogEnds:
    """Where the log of a partition begins and ends."""

    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class KeyState:
    """One key's state in one computation, as JSON can hold it."""

    stage: str
    computation: str
    partition: int
    offset: int
    key: str
    state: Any


@dataclass(frozen=True, slots=True)
class RestoredSnapshot:
    """A partition's newest usable snapshot: the state of all records below `offset`, and its size as it is stored."""

    stage: str
    partition: int
    offset: int
    size_bytes: int
    worker: PartitionWorker

    @property
    def keys(self) -> dict[str, int]:
        """How many keys each computation has."""
        return {name: table.keys for name, table in self.worker.tables.items()}

    def state(self, computation: str, key: KeyValue, state: Any) -> KeyState:
        """One of its states, with its stage, partition and offset."""
        return KeyState(self.stage, computation, self.partition, self.offset, key_text(key), state)


def reset_text(application: str, records: int, *, done: bool) -> str:
    """The effect of deleting all snapshots of an application. `records`: the number in its logs."""
    if done:
        return f"snapshots of {application} deleted; the next start folds {records:,} records again"
    return f"would delete all snapshots of {application}; the next start folds {records:,} records"
