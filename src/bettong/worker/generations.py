"""Generations of an application: what a fold does at the record behind which another number of partitions counts."""

from bettong.errors import LogTruncatedError
from bettong.frames.frame import Repartition
from bettong.identifiers import PartitionId


def check_generation(known: int, offset: int, begins: Repartition, partition: PartitionId) -> None:
    """`known`: the generation of the states. Raises LogTruncatedError where what lies behind is of a later one.

    No fold of this log gives the states behind the record: they were put together from those of all partitions, and
    lie in snapshots. A record that comes twice, or was begun and written again, says nothing new.
    """
    if begins.generation > known:
        raise LogTruncatedError(
            f"stage {partition.stage!r}, partition {partition.partition}: at offset {offset} its application was given"
            f" {begins.partitions} partitions, and no snapshot of then, or of later, can be read: what lies before it"
            " does not give the states behind it. Stop everything, and run `bettong repartition` with --partitions"
            f" {begins.partitions} once more: it makes them again, if those of before are there. Else restore the"
            " snapshots from a copy, or start under another application name"
        )
