"""Which windows are open, and which origin of which source holds them open, since when. Pure.

    an origin sends no newer event time  ->  its input's watermark stands  ->  its partition's watermark stands
      ->  windows, joins and timers of that partition wait

From partitions' own reports (`event_progress`). Event times are those of messages; `now_ns` and since when something
stands are wall-clock times, by which senders stamp records.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from bettong.event_progress import DueComputation, DueKind, EventProgress, InputProgress
from bettong.identifiers import Origin, PartitionId
from bettong.inspection.overview import PartitionRow

# As many as a person reads, the oldest first; later ones wait behind these.
WINDOWS_MAX = 20


class WaitsFor(StrEnum):
    """The event that moves a watermark next."""

    RECORDS = "records"  # of its log, not folded yet: newer times of the slowest origin may be among them
    PARTITION = "partition"  # of the stage before, which has reported nothing yet
    EVENT_TIME = "event time"  # of an origin that has sent none yet
    ORIGIN = "origin"  # the slowest one: newer messages of it, its end, or its idle timeout
    CLOCK = "clock"  # no origin is live, so the watermark follows the log clock
    MESSAGES = "messages"  # the first ones: nothing is known


@dataclass(frozen=True, slots=True)
class InputWatermark:
    """The watermark of one input in the partition where it is lowest, and the slowest origin there.

    `watermark_ns`: 0 while unknown, and where none is `live`. `since_ns`: since when it has not moved, by the log's
    clock; None while unknown; `at_least`: perhaps for longer. `silent_s`: for how long that origin has sent nothing.
    `idle_at_ns`: when it no longer counts unless it sends something; None: never, or it is not live.
    """

    id: PartitionId
    producer: str
    origin: Origin
    live: int
    awaited: int
    watermark_ns: int
    since_ns: int | None
    at_least: bool
    silent_s: float | None
    idle_s: float | None
    idle_at_ns: int | None

    @property
    def is_of_stage(self) -> bool:
        """Whether partitions of the stage before write it, rather than clients of a source."""
        return "/" in self.producer

    @property
    def source(self) -> str:
        """The source, or the stage before."""
        return self.producer.rpartition("/")[2]

    @property
    def stream(self) -> str:
        """The client's stream, or the number of the partition; "" where no origin is known."""
        return self.origin.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Hold:
    """Why a partition's watermark is where it is. `input`: the one that holds it; None where no origin does.

    `waiting_records`: in its log, not folded yet, whatever it waits for; None for none.
    """

    id: PartitionId
    watermark_ns: int
    waits_for: WaitsFor
    input: InputWatermark | None
    waiting_records: int | None


@dataclass(frozen=True, slots=True)
class OpenWindow:
    """The oldest open window of a computation, in all partitions that have it open. `partitions`: how many.

    `due_ns`: the watermark that closes it. `short_s`: how much event time is missing; None while unknown.
    `start_ns`, `end_ns`: of a window on a grid, else None. `hold`: of the partition with the lowest watermark.
    """

    stage: str
    computation: str
    kind: DueKind
    start_ns: int | None
    end_ns: int | None
    due_ns: int
    short_s: float | None
    partitions: int
    hold: Hold


class _Wait(NamedTuple):
    """The identity of an open window, across partitions."""

    due_ns: int
    stage: str
    computation: str


def open_windows(
    rows: Iterable[PartitionRow], now_ns: int, at_most: int = WINDOWS_MAX
) -> tuple[OpenWindow, ...]:
    """The oldest open window of each computation in each partition, the oldest of all first.

    Joins and timers, too. For one partition, pass its row alone.
    """
    found: dict[_Wait, list[tuple[PartitionRow, DueComputation]]] = {}
    for row in rows:
        for due in row.event_progress.due if row.event_progress is not None else ():
            found.setdefault(_Wait(due.due_ns, row.stage, due.computation), []).append((row, due))
    oldest = sorted(found)[: max(0, at_most)]
    return tuple(_window(found[key], now_ns) for key in oldest)


def input_watermarks(rows: Iterable[PartitionRow], now_ns: int) -> tuple[InputWatermark, ...]:
    """By stage and input, of the partition with the lowest watermark; inputs without a live origin, too."""
    lowest: dict[tuple[str, str], InputWatermark] = {}
    for row in rows:
        for each in _inputs(row, now_ns):
            known = lowest.setdefault((row.stage, each.producer), each)
            if _rank(each) < _rank(known):
                lowest[row.stage, each.producer] = each
    return tuple(lowest[key] for key in sorted(lowest))


def hold_of(row: PartitionRow, now_ns: int) -> Hold:
    """Why the watermark of a partition is where it is."""
    inputs = [each for each in _inputs(row, now_ns) if each.live or each.awaited]
    holder = min(inputs, key=_rank, default=None)
    if holder is None:
        waits_for = WaitsFor.CLOCK if row.watermark_ns else WaitsFor.MESSAGES
    elif holder.awaited:
        waits_for = WaitsFor.PARTITION
    else:
        waits_for = WaitsFor.ORIGIN if holder.watermark_ns else WaitsFor.EVENT_TIME
    if row.unfolded and _may_wait_among_records(holder, row.event_progress, now_ns):
        waits_for = WaitsFor.RECORDS
    return Hold(row.id, row.watermark_ns, waits_for, holder, row.unfolded or None)


def _may_wait_among_records(
    holder: InputWatermark | None, progress: EventProgress | None, now_ns: int
) -> bool:
    """Whether what moves the watermark may be in the log already.

    Under load some records always wait, and came after the last one that was folded. An origin that had stood for
    longer by then than these can have waited will not move by them, nor will a partition that never reported.
    """
    if holder is None or progress is None:
        return True
    if holder.since_ns is None:
        return not holder.awaited
    return progress.log_ns - holder.since_ns <= max(0, now_ns - progress.log_ns)


def _window(found: Sequence[tuple[PartitionRow, DueComputation]], now_ns: int) -> OpenWindow:
    row, due = min(found, key=lambda each: (each[0].watermark_ns, each[0].partition))
    hold = hold_of(row, now_ns)
    return OpenWindow(
        stage=row.stage,
        computation=due.computation,
        kind=due.kind,
        start_ns=due.start_ns,
        end_ns=due.end_ns,
        due_ns=due.due_ns,
        short_s=max(0, due.due_ns - row.watermark_ns) / 1e9 if row.watermark_ns else None,
        partitions=len(found),
        hold=hold,
    )


def _rank(each: InputWatermark) -> tuple[int, int, int]:
    """The lowest holds all others: awaited inputs, then live ones, by watermark."""
    return (0 if each.awaited else 1 if each.live else 2), each.watermark_ns, each.id.partition


def _inputs(row: PartitionRow, now_ns: int) -> list[InputWatermark]:
    progress = row.event_progress
    if progress is None:
        return []
    # Where records wait, newer ones of an origin may be among them: only the log clock is exact.
    at_ns = progress.log_ns if row.unfolded else max(now_ns, progress.log_ns)
    return [_input(row.id, each, progress, at_ns) for each in progress.inputs]


def _input(id_: PartitionId, own: InputProgress, progress: EventProgress, at_ns: int) -> InputWatermark:
    is_live = bool(own.live and not own.awaited)
    since_ns = (own.moved_ns or own.heard_ns or None) if is_live else None
    return InputWatermark(
        id=id_,
        producer=own.producer,
        origin=own.origin,
        live=own.live,
        awaited=own.awaited,
        watermark_ns=own.watermark_ns,
        since_ns=min(since_ns, progress.log_ns) if since_ns is not None else None,
        at_least=not own.moved_ns,
        silent_s=max(0, at_ns - own.heard_ns) / 1e9 if is_live else None,
        idle_s=own.idle_ns / 1e9 if own.idle_ns is not None else None,
        idle_at_ns=own.heard_ns + own.idle_ns if is_live and own.idle_ns is not None else None,
    )
