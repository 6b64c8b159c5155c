"""Saves snapshots that no later batch triggers: the driver knows up to which offset output is durable.

The start of a batch proves that the output of the one before is durable. A partition's last batch has no successor: its
state is saved once the partition is idle (see `unsaved`), or when the query has stopped.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from bettong import metrics
from bettong.config.processor import ProcessorSettings
from bettong.errors import StoreError
from bettong.identifiers import PartitionId, TopicPartition
from bettong.logs import Logger
from bettong.topics import stage_of_topic
from bettong_processor.micro_batch.arrow_maps import map_in_arrow
from bettong_processor.micro_batch.task import process_of
from bettong_processor.programs import programs

# A stop must be quick; what is not saved by then is folded from the log again, as after a crash.
_SAVE_S_MAX = 8.0
_SAVED = StructType([StructField("index", LongType()), StructField("offset", LongType())])

Ends = Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class Save:
    """The function of `mapInArrow`: copies states up to `ends` from this machine's shared memory to the store.

    Returns the partitions that are saved now, by their indexes in `ends`, with the offset of the snapshot.
    """

    settings: ProcessorSettings
    log_id: str
    ends: tuple[tuple[PartitionId, int], ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stops at the first state that cannot be saved."""
        process = process_of(self.settings, self.log_id)
        deadline_s = time.monotonic() + _SAVE_S_MAX
        numbers = [int(number) for batch in batches for number in batch.column(0).to_pylist()]
        # Tasks on one machine begin at different partitions; each skips what another has saved.
        turn = (numbers[0] if numbers else 0) % max(1, len(self.ends))
        found: list[tuple[int, int]] = []
        for index in (*range(turn, len(self.ends)), *range(turn)):
            partition, offset = self.ends[index]
            if time.monotonic() > deadline_s:
                break
            try:
                saved = process.uploads.complete(partition, offset)
            except StoreError:
                break  # logged there
            if saved is not None:
                # Clears the fault here, since an idle partition has no batch that would write its metrics.
                process.metrics.write(partition, {**saved.metrics(), metrics.SNAPSHOT_FAULT.name: ""})
                found.append((index, saved.offset))
        pairs = np.array(found, np.int64).reshape(-1, 2).T
        columns = [  # not by `pa.array`: see Step
            pa.Array.from_buffers(pa.int64(), len(found), [None, pa.py_buffer(pair.copy())]) for pair in pairs
        ]
        yield pa.RecordBatch.from_arrays(columns, names=["index", "offset"])


def save(
    spark: SparkSession, settings: ProcessorSettings, log_id: str, ends: Ends, *, log: Logger
) -> dict[TopicPartition, int]:
    """Runs a task for each slot, so that every executor saves its part. Returns saved offsets by (topic, partition).

    Never raises: unsaved states are folded again, as after a crash.
    """
    planned = programs(settings).plan
    order = sorted(ends.items())
    stage_ends = tuple(
        (PartitionId(stage_of_topic(planned.application, log.topic), log.partition), offset)
        for log, offset in order
    )
    try:
        slots = spark.sparkContext.defaultParallelism
        numbers = spark.range(slots, numPartitions=slots)
        rows = map_in_arrow(numbers, Save(settings, log_id, stage_ends), _SAVED).collect()
    except (PySparkException, Py4JError, ConnectionError) as error:
        log.warning(
            "the last snapshots are not saved; a restart folds more", fault=str(error).splitlines()[0]
        )
        return {}
    saved: dict[TopicPartition, int] = {}
    for row in rows:
        partition = order[row["index"]][0]
        saved[partition] = max(row["offset"], saved.get(partition, 0))
    return saved
