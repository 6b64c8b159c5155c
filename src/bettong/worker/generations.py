"""Generations of an application: what a fold does at the record behind which another number of partitions counts.

A sender, or a processor, that was cut off while the number was changed may still write, when it is back, what it had
divided for the old one. Behind the mark this counts for nothing, and nothing is noted of it: its rows belong to other
partitions now. A client has no receipt for such a frame, and sends it again; then it is divided anew, and may have rows
where the old one had none, and none where it had some. Frames between stages need no such rule: an application at rest
has all of them in the log, so one that is written again is a duplicate.
"""

from dataclasses import replace

from bettong.delivery import is_client
from bettong.errors import LogTruncatedError
from bettong.frames.frame import Frame, FrameKind, Repartition
from bettong.identifiers import PartitionId


def is_outdated(frame: Frame, known: int) -> bool:
    """Whether a record was divided for an earlier generation than that of the states, which is `known`."""
    if frame.generation >= known:
        return False
    of_client = frame.kind in (FrameKind.DATA, FrameKind.OPEN, FrameKind.END) and is_client(frame.origin)
    return of_client or frame.kind is FrameKind.TICK


def only_time(frame: Frame) -> Frame:
    """What an outdated record counts for: a TICK that says nothing of origins."""
    return replace(frame, kind=FrameKind.TICK, watermarks={}, idle={}, watermark_ns=0)


def generation_behind(known: int, offset: int, begins: Repartition, partition: PartitionId) -> int:
    """Of what lies behind the record. `known`: the generation of the states before it.

    Raises LogTruncatedError where that is a later one. No fold of this log gives the states behind the record: they
    were put together from those of all partitions, and lie in snapshots. But of a stage that began with that generation
    there are none. A record that comes twice, or was begun and written again, says nothing new.
    """
    if begins.begins_stage:
        return max(known, begins.generation)
    if begins.generation > known:
        raise LogTruncatedError(
            f"stage {partition.stage!r}, partition {partition.partition}: at offset {offset} its application was given"
            f" {begins.partitions} partitions, and no snapshot of then, or of later, can be read: what lies before it"
            " does not give the states behind it. Stop everything, and run `bettong repartition` with --partitions"
            f" {begins.partitions} once more: it makes them again, if those of before are there. Else restore the"
            " snapshots from a copy, or start under another application name"
        )
    return known
