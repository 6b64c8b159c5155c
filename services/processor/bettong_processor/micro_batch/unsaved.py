"""Decides when to save the states of idle partitions, for which no later batch triggers a snapshot. Pure.

The start of a batch proves that the output of the one before is durable. A partition without a further record has no
such batch, so its newest state would never become a snapshot. Here it becomes due once Spark has committed the batch
(says its progress report) and the partition's offset has not moved for a snapshot interval.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bettong.backoff import pause_s
from bettong.identifiers import TopicPartition

Offsets = Mapping[TopicPartition, int]

# A state that could not be saved (it is no longer in memory, or the store is unreachable) is retried after 1 s, 2 s ...
_PAUSE_S_MIN, _PAUSE_S_MAX = 1.0, 60.0


@dataclass(slots=True)
class _Rest:
    offset: int
    tries: int = 0
    not_before_s: float = 0.0


@dataclass(slots=True)
class Unsaved:
    """For one query. `saved`: offsets of the snapshots at its start. Seconds of one monotonic clock."""

    interval_s: float
    saved: dict[TopicPartition, int]
    _rests: dict[TopicPartition, _Rest] = field(default_factory=dict)

    def due(self, committed: Offsets, now_s: float) -> dict[TopicPartition, int]:
        """The partitions to save now, each with the offset below which all output is durable."""
        for partition, offset in committed.items():
            rest = self._rests.get(partition)
            if rest is None or rest.offset != offset:
                self._rests[partition] = _Rest(offset, not_before_s=now_s + self.interval_s)
        return {
            partition: rest.offset
            for partition, rest in self._rests.items()
            if rest.offset > self.saved.get(partition, 0) and now_s >= rest.not_before_s
        }

    def note_attempt(self, due: Offsets, saved: Offsets, now_s: float) -> None:
        """Notes the result of an attempt: `saved` has the offset of each partition that has a snapshot now."""
        self.saved |= saved
        for partition, offset in due.items():
            if self.saved.get(partition, 0) < offset:
                rest = self._rests[partition]
                rest.tries += 1
                rest.not_before_s = now_s + pause_s(rest.tries, first_s=_PAUSE_S_MIN, max_s=_PAUSE_S_MAX)
