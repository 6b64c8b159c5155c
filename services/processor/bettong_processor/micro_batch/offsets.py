"""Where a query starts: at its checkpoint, else at the newest snapshots, else at the beginning of the log."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pyspark import SparkContext

from bettong.application.plan import Plan
from bettong.identifiers import PartitionId, TopicPartition
from bettong.snapshots.chain import chains
from bettong.snapshots.store import SnapshotStore
from bettong.topics import stage_topic
from bettong_processor.micro_batch.progress import offsets_of

_OFFSETS, _COMMITS = "offsets", "commits"


def snapshot_offsets(store: SnapshotStore, plan: Plan, partitions: int) -> dict[TopicPartition, int]:
    """Where a query without a checkpoint starts: at each partition's newest snapshot."""
    offsets: dict[TopicPartition, int] = {}
    for stage in plan.stages:
        for partition in range(partitions):
            complete = chains(store.increments(PartitionId(stage.name, partition)))
            if complete:
                offsets[TopicPartition(stage_topic(plan.application, stage.name), partition)] = complete[0][
                    -1
                ].offset
    return offsets


def starting_offsets(
    topics: tuple[str, ...], partitions: int, first_offsets: Mapping[TopicPartition, int]
) -> str:
    """The starting offsets in Spark's JSON format, in which -2 means the beginning of the log."""
    return json.dumps(
        {
            topic: {
                str(number): first_offsets.get(TopicPartition(topic, number), -2)
                for number in range(partitions)
            }
            for topic in topics
        }
    )


def forget(context: SparkContext, checkpoint: str) -> bool:
    """Deletes a checkpoint, so that the next query starts at the newest snapshots; whether there was one.

    For when another schedule or processor goes on: it saves newer states, and the stores delete those that belong to
    the checkpoint's offsets. Raises Py4JError when it cannot be deleted.
    """
    files, path = _path(context, checkpoint)
    return bool(files.delete(path, True))  # noqa: FBT003 - Java takes no keywords


def is_behind(context: SparkContext, checkpoint: str, snapshots: Mapping[TopicPartition, int]) -> bool:
    """Whether the newest snapshot of any partition is of an offset beyond the checkpoint's last committed batch.

    A query saves snapshots of its committed batches only: something else has folded since, and the stores delete the
    states that belong to the checkpoint's offsets. Raises Py4JError when the checkpoint cannot be read.
    """
    return bool(snapshots) and exceeds(snapshots, committed_offsets(_committed_text(context, checkpoint)))


def exceeds(offsets: Mapping[TopicPartition, int], others: Mapping[TopicPartition, int]) -> bool:
    """Whether any offset is beyond that of the same partition in `others`, where a missing one is 0. Pure."""
    return any(offset > others.get(partition, 0) for partition, offset in offsets.items())


def committed_offsets(text: str) -> dict[TopicPartition, int]:
    """The offsets in a file of Spark's offset log; none if it cannot be read. Pure.

    Its lines: a version, metadata as JSON, and the offsets of the query's source as JSON.
    """
    _, _, source, *_ = [*text.splitlines(), "", "", ""]
    try:
        return offsets_of(source)
    except ValueError:
        return {}


def forget_earlier(context: SparkContext, folder: str, checkpoint: str) -> bool:
    """Deletes everything in an application's `folder` except its `checkpoint`; whether there was anything.

    These are checkpoints from before a repartitioning, with offsets of the former partitions.
    """
    if checkpoint == folder:
        return False
    files, path = _path(context, folder)
    _, own = _path(context, checkpoint)
    if not files.exists(path):
        return False
    earlier = [
        found for each in files.listStatus(path) if (found := each.getPath()).getName() != own.getName()
    ]
    for each in earlier:
        files.delete(each, True)  # noqa: FBT003 - Java takes no keywords
    return bool(earlier)


def clear_unfinished(context: SparkContext, checkpoint: str) -> bool:
    """Removes from the offset log what a killed query has left unfinished; whether there was anything.

    A batch that was planned but not committed: Spark would repeat exactly that batch before it reads newer records.
    Starting from the last commit instead, one batch has both. The end of a batch does not affect results: tasks write
    frames that were written before with the same sequence numbers.

    Also the folder, if it holds only a half-written file. Spark writes under another name, then renames. With only
    such a file it can neither resume, for there is no batch, nor start (`STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY`),
    and would fail at every start.
    """
    files, offsets = _path(context, checkpoint, _OFFSETS)
    if not files.exists(offsets):
        return False
    names = [each.getPath().getName() for each in files.listStatus(offsets)]
    newest = _newest(names)
    if newest is None:
        return bool(names) and bool(files.delete(offsets, True))  # noqa: FBT003 - Java takes no keywords
    if not _is_committed(context, checkpoint, newest - 1) or _is_committed(context, checkpoint, newest):
        return False
    _, begun = _path(context, checkpoint, _OFFSETS, str(newest))
    return bool(files.delete(begun, False))  # noqa: FBT003 - see above


def _is_committed(context: SparkContext, checkpoint: str, batch: int) -> bool:
    files, path = _path(context, checkpoint, _COMMITS, str(batch))
    return bool(files.exists(path))


def _committed_text(context: SparkContext, checkpoint: str) -> str:
    """The file of the last committed batch's end offsets; "" if there is none."""
    files, commits = _path(context, checkpoint, _COMMITS)
    if not files.exists(commits):
        return ""
    newest = _newest(each.getPath().getName() for each in files.listStatus(commits))
    _, path = _path(context, checkpoint, _OFFSETS, str(newest))
    if not files.exists(path):
        return ""
    java: Any = context._jvm  # noqa: SLF001 - see `_path`
    stream = files.open(path)
    try:
        return str(java.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
    finally:
        stream.close()


def _newest(names: Iterable[str]) -> int | None:
    """The newest batch of a folder; the names of files that are being written are no numbers."""
    return max((int(name) for name in names if name.isdecimal()), default=None)


def _path(context: SparkContext, *names: str) -> tuple[Any, Any]:
    """The file system of a path, and the path, as Hadoop's objects."""
    java: Any = context._jvm  # noqa: SLF001 - Python has no other way to Hadoop's file systems
    path = java.org.apache.hadoop.fs.Path("/".join(names))
    return path.getFileSystem(context._jsc.hadoopConfiguration()), path  # noqa: SLF001 - see above
