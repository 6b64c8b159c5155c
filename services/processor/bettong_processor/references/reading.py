"""Reads the reference tables that a worker's next record sees, and waits while their store does not answer.

A new task in the worker's place would need the same store, and have to restore the states first.

A stop ends the wait: under `resident` through `holds`; under `micro-batch`, whose tasks are not told of it, Spark kills
the worker some seconds after the query has stopped.
"""

from collections.abc import Callable

from bettong.backoff import attempts
from bettong.errors import ReferenceLostError, StoreError
from bettong.logs import Logger
from bettong.worker.partition import PartitionWorker

# In addition to the store's own attempts. The other partitions of the slot wait, too.
_STORE_S_MAX = 30.0


def read_references(worker: PartitionWorker, holds: Callable[[], bool], log: Logger) -> None:
    """Blocks while the store is away, for half a minute and an attempt of the store's. Costs nothing where the tables
    are read already.

    Raises ReferenceLostError; StoreError once it takes too long, or the task does not go on with the partition, by
    `holds`. The worker is unchanged then.
    """

    def may_pass(error: BaseException) -> bool:
        return isinstance(error, StoreError) and not isinstance(error, ReferenceLostError) and holds()

    try:
        worker.read_references()
    except StoreError as error:
        if not may_pass(error):
            raise
        log.warning("waits for the store of reference tables", **worker.id._asdict(), fault=str(error))
        attempts(_STORE_S_MAX, may_pass)(worker.read_references)
