"""Checks before a schedule starts whether the application can resume from its saved states and logs.

Workers would find the same faults, but only with the first record of each partition. The application's own code
restores states and may kill the process, so this runs in child processes. Workers report such states themselves
(`crashes.states`).
"""

import mmap
from collections.abc import Collection, Iterable, Mapping, Sequence

from bettong.errors import LogTruncatedError, StateChangedError
from bettong.identifiers import PartitionId, TopicPartition
from bettong.listing import first_named, first_texts
from bettong.snapshots.chain import Increment, chains
from bettong.snapshots.store import SnapshotStore
from bettong.topics import stage_topic
from bettong.worker.halving import Death, Unknown
from bettong.worker.partition import Assignment, PartitionWorker
from bettong_processor.crashes.trial import SuspectRecord, Trial
from bettong_processor.programs import Programs
from bettong_processor.restoring import WorkerLimits

# How much of the increments is read at a start: most were saved by the same code, and a start must not read states of
# gigabytes twice.
_CHECKED_BYTES_MAX = 32 * 1024 * 1024
_NAMED_MAX = 4
# The longest error text that a child passes to its parent.
_TEXT_BYTES_MAX = 1 << 16


def check(
    programs: Programs,
    limits: WorkerLimits,
    stores: Iterable[SnapshotStore],
    begins: Mapping[TopicPartition, int],
    *,
    replaced: Collection[str] = (),
) -> list[str]:
    """Raises LogTruncatedError when a log was trimmed beyond every snapshot, or is another one, StateChangedError when
    this version of the application cannot resume from the states; and StoreError.

    `begins`: where the log of each (topic, partition) begins. `replaced`: the topics of stages that were deleted and
    made again since their states were saved: records below the offset of a state were never folded. A state may be in
    any of the `stores`. Returns a line for each state that could not be checked because its child died or did not
    finish; workers will report those.
    """
    found = list(stores)
    partitions = [
        PartitionId(stage, number) for stage in programs.stages for number in range(limits.partitions)
    ]
    saved = {
        partition: {each for store in found for each in store.increments(partition)}
        for partition in partitions
    }
    application = programs.plan.application
    with_states = {stage_topic(application, each.stage) for each, increments in saved.items() if increments}
    if others := with_states.intersection(replaced):
        raise LogTruncatedError(_replaced_text(sorted(others), application))
    begins_of = {
        each: begins.get(TopicPartition(stage_topic(application, each.stage), each.partition), 0)
        for each in saved
    }
    if gaps := truncated_logs(saved, begins_of):
        raise LogTruncatedError(_truncated_text(gaps))
    return _check_states(programs, limits, found, saved)


def truncated_logs(
    saved: Mapping[PartitionId, Iterable[Increment]], begins: Mapping[PartitionId, int]
) -> dict[PartitionId, tuple[int, int]]:
    """The partitions whose log begins after their newest snapshot: both offsets, by partition. Pure."""
    found = {}
    for partition, begin in begins.items():
        newest = max((each[-1].offset for each in chains(set(saved.get(partition, ())))), default=0)
        if newest < begin:
            found[partition] = (newest, begin)
    return found


def _replaced_text(topics: Sequence[str], application: str) -> str:
    return (
        f"topic {first_named(topics, _NAMED_MAX)} was deleted and made again since states were saved, which are of the"
        " records of the one before: restore it, or start under another application name. If it holds the same"
        f" records at the same offsets, delete the key bettong:{application}:logs in Redis"
    )


def _truncated_text(gaps: Mapping[PartitionId, tuple[int, int]]) -> str:
    named = [
        f"stage {stage!r}, partition {partition}: no state reaches offset {begin}, where its log begins now; "
        + (f"its newest snapshot is of offset {newest}" if newest else "it has no snapshot")
        for (stage, partition), (newest, begin) in sorted(gaps.items())
    ]
    return (
        f"{first_texts(named, _NAMED_MAX)}. The log no longer holds the records in between: restore the snapshots, or"
        " start under another application name; and lengthen the retention of the topic"
    )


def _check_states(
    programs: Programs,
    limits: WorkerLimits,
    stores: list[SnapshotStore],
    saved: Mapping[PartitionId, set[Increment]],
) -> list[str]:
    left_bytes, deadly = _CHECKED_BYTES_MAX, list[str]()
    for partition, increments in saved.items():
        complete = chains(increments)
        if not complete or left_bytes <= 0:
            continue
        newest = complete[0][-1]
        data = next((data for store in stores if (data := store.load(partition, newest))), b"")
        left_bytes -= len(data)
        assignment = Assignment(
            programs.plan.application, partition.partition, limits.partitions, limits.frame_bytes_max
        )
        # A worker for this check only: whether the states can be restored shows only by restoring them.
        worker = PartitionWorker(programs.stages[partition.stage], assignment)
        lost = _restore_in_child(worker, newest, data)
        if lost is not None:
            deadly.append(f"{partition}, states at offset {newest.offset}: {lost.reason}")
        if isinstance(lost, Unknown):
            break  # the next ones may take as long
    return deadly


def _restore_in_child(worker: PartitionWorker, increment: Increment, data: bytes) -> Death | Unknown | None:
    """Restores a state in a child; how the child died, None if it did not. Raises StateChangedError.

    A state that is damaged, or was deleted meanwhile, is no fault here: workers use the one before it.
    """
    with mmap.mmap(-1, _TEXT_BYTES_MAX) as shared:

        def restore() -> None:
            try:
                worker.restore(data)
            except StateChangedError as error:
                text = str(error).encode()[:_TEXT_BYTES_MAX]
                shared[: len(text)] = text

        lost = Trial(worker, SuspectRecord(increment.offset, b"", 0), 0).run(restore)
        text = shared[:].rstrip(b"\0").decode(errors="replace")
    if text:
        raise StateChangedError(text)
    return lost
