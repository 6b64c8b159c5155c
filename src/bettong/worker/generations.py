"""Generations of an application: each has its number of partitions, and begins at a mark, a record in every log.

A sender or processor that was cut off during the change may still write, when it is back, records that it partitioned
for the old number. After the mark they are ignored, and nothing is noted of them: their rows belong to other partitions
now. The client has no receipt for such a frame and sends it again; then it is partitioned anew, and may have rows where
the old frame had none, and none where it had some. Frames between stages need no such rule: an application at rest has
all of them in the log, so one that is written again is a duplicate.
"""

from dataclasses import replace

from bettong.delivery import is_client
from bettong.errors import LogTruncatedError
from bettong.frames.frame import Frame, FrameKind, Repartition
from bettong.identifiers import PartitionId


def is_outdated(frame: Frame, known: int) -> bool:
    """Whether a record was partitioned for an earlier generation than that of the states, which is `known`."""
    if frame.generation >= known:
        return False
    of_client = frame.kind in (FrameKind.DATA, FrameKind.OPEN, FrameKind.END) and is_client(frame.origin)
    return of_client or frame.kind is FrameKind.TICK


def as_bare_tick(frame: Frame) -> Frame:
    """What an outdated record still does: it moves the log clock, as a TICK that names no origin."""
    return replace(frame, kind=FrameKind.TICK, watermarks={}, idle={}, watermark_ns=0)


def generation_after(known: int, offset: int, begins: Repartition, partition: PartitionId) -> int:
    """The generation after a mark. `known`: the generation of the states before it.

    Raises LogTruncatedError where the mark begins a later one: folding this log cannot make the states after it, which
    were assembled from those of all partitions, and are in snapshots. A stage that is new in that generation had no
    states. A mark that was written twice, as by a change that was interrupted, changes nothing the second time.
    """
    if begins.begins_stage:
        return max(known, begins.generation)
    if begins.generation > known:
        raise LogTruncatedError(
            f"stage {partition.stage!r}, partition {partition.partition}: at offset {offset} its application changed to"
            f" {begins.partitions} partitions, and no snapshot of that moment or later can be read; the records before"
            " it do not make the states after it. Stop everything, and run `bettong repartition` with --partitions"
            f" {begins.partitions} once more: it makes these snapshots again if the earlier ones are there. Else"
            " restore the snapshots from a copy, or start under another application name"
        )
    return known
