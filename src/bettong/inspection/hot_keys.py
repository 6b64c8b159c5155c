"""Hot keys: the heaviest ones, and those that are too much for a partition. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from bettong import metrics
from bettong.hot_keys import HotKey, HotKeys
from bettong.identifiers import PartitionId

# A key with this multiple of a partition's even share overloads its partition, whatever the number of partitions: of
# 16 partitions, an eighth of all messages.
_TOO_MUCH = 2.0
_REMEDY = (
    "a key is in one partition, so neither more partitions nor more cores help: pre-aggregate by `local` in place of"
    " `key_by`; or key by more fields, and combine the parts in a later stage"
)


class PartitionLoad(Protocol):
    """The part of `PartitionRow` that matters here."""

    @property
    def id(self) -> PartitionId:
        """Which partition."""

    @property
    def messages(self) -> int:
        """Folded."""

    @property
    def messages_per_s(self) -> float | None:
        """Folded recently; None where the schedule does not measure it."""

    @property
    def hot_keys(self) -> tuple[HotKey, ...]:
        """The heaviest first."""


@dataclass(frozen=True, slots=True)
class Skew:
    """A key that has at least `share` of its stage's messages, more than a partition's even share (`fair`)."""

    id: PartitionId
    key: str
    share: float
    fair: float

    @property
    def text(self) -> str:
        """The problem, and what to do."""
        return (
            f"{self.id}: key {self.key!r} has {self.share:.0%} of the messages of its stage, an even share per"
            f" partition is {self.fair:.0%}; {_REMEDY}"
        )


def hot_keys_of(record: Mapping[str, str]) -> tuple[HotKey, ...]:
    """The hot keys in a partition's record; none if it cannot be read."""
    try:
        return HotKeys.parse(record.get(metrics.HOT_KEYS.name, "")).keys
    except ValueError:
        return ()


def skews(rows: Iterable[PartitionLoad]) -> list[Skew]:
    """The keys that alone are too much for a partition, the heaviest first, compared with all partitions of a stage.

    By recent rates where all partitions with messages measure them, else by counts since the beginning.
    """
    by_stage: dict[str, list[PartitionLoad]] = {}
    for row in rows:
        by_stage.setdefault(row.id.stage, []).append(row)
    found = [skew for stage in by_stage.values() for skew in _skews_of(stage)]
    return sorted(found, key=lambda each: (-each.share / each.fair, each.id, each.key))


def _skews_of(rows: Sequence[PartitionLoad]) -> Iterable[Skew]:
    rates = [row.messages_per_s if row.messages else 0.0 for row in rows]
    known = [rate for rate in rates if rate is not None]
    loads = known if len(known) == len(rows) and any(known) else [float(row.messages) for row in rows]
    total, fair = sum(loads) or 1.0, 1 / len(rows)
    for row, load in zip(rows, loads, strict=True):
        for key in row.hot_keys:
            share = key.least * load / total
            if share >= _TOO_MUCH * fair:
                yield Skew(row.id, key.key, share, fair)
