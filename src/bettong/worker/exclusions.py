"""Messages and timers that a stage excludes from its fold because they killed the worker: decided once, in the log."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bettong.v1.exclusion_pb2 import ExcludedRows
from bettong.v1.exclusion_pb2 import ExcludedTimer as StoredTimer
from bettong.v1.exclusion_pb2 import Exclusion as Stored


@dataclass(frozen=True, slots=True)
class Excluded:
    """Messages of a frame, from `first` up to but not including `stop`, which killed a worker in `computation`."""

    first: int
    stop: int
    computation: str
    reason: str


@dataclass(frozen=True, slots=True)
class ExcludedTimer:
    """A timer of the computation `owner` that is not called, because it killed a worker in `computation`.

    `timer`: its `Firing.text`; empty for all of the owner's that are due at the record.
    """

    owner: str
    timer: bytes
    computation: str
    reason: str


@dataclass(frozen=True, slots=True)
class Exclusion:
    """What is excluded from the record at `offset`. `record`: why all of it, unread, and all timers are; else "".

    `is_logged`: whether the log holds it. Then the fold has gone on without it, whatever `on_error` says now.
    """

    offset: int
    rows: tuple[Excluded, ...] = ()
    record: str = ""
    is_logged: bool = False
    timers: tuple[ExcludedTimer, ...] = ()

    def of_frame(self, length: int) -> Iterator[tuple[int, Excluded]]:
        """Each message that is excluded from a frame of `length` messages: its index, and why."""
        for each in self.rows:
            for index in range(each.first, min(each.stop, length)):
                yield index, each

    def covers(self, other: "Exclusion") -> bool:
        """Whether it excludes all that `other`, of the same record, excludes."""
        if self.record or other.record:
            return bool(self.record)
        timers = {(each.owner, each.timer) for each in self.timers}
        return all(
            any(each.first <= row.first and row.stop <= each.stop for each in self.rows) for row in other.rows
        ) and all({(timer.owner, timer.timer), (timer.owner, b"")} & timers for timer in other.timers)

    def of_timers(self, owner: str) -> Mapping[bytes, ExcludedTimer]:
        """The timers of a computation that are not called, by their `timer`, which may be empty."""
        if self.record:
            return {b"": ExcludedTimer(owner, b"", owner, self.record)}
        return {each.timer: each for each in self.timers if each.owner == owner}


def counting(earlier: Exclusion | None, later: Exclusion) -> Exclusion:
    """Which of two exclusions in the log for one record is in force: the first, unless the later one adds to it."""
    if earlier is None or (later.covers(earlier) and not earlier.covers(later)):
        return later
    return earlier


def encode_exclusion(stage: str, exclusion: Exclusion) -> bytes:
    """The exclusion as a record of the log."""
    rows = [
        ExcludedRows(first=each.first, stop=each.stop, computation=each.computation, reason=each.reason)
        for each in exclusion.rows
    ]
    timers = [
        StoredTimer(owner=each.owner, timer=each.timer, computation=each.computation, reason=each.reason)
        for each in exclusion.timers
    ]
    stored = Stored(stage=stage, offset=exclusion.offset, rows=rows, record=exclusion.record, timers=timers)
    return stored.SerializeToString()


def decode_exclusion(value: bytes) -> tuple[str, Exclusion]:
    """The stage and the exclusion of such a record. Raises protobuf's DecodeError for anything else."""
    stored = Stored.FromString(value)
    rows = tuple(Excluded(each.first, each.stop, each.computation, each.reason) for each in stored.rows)
    timers = tuple(
        ExcludedTimer(each.owner, each.timer, each.computation, each.reason) for each in stored.timers
    )
    return stored.stage, Exclusion(stored.offset, rows, stored.record, is_logged=True, timers=timers)
