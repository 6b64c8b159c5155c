"""One partition's worker, fed from memory, and the CPU time that it takes."""

import math
import time
from collections.abc import Iterable

from bettong.garbage import CollectionPaused
from bettong.worker.output.framing import OutputRecord
from bettong.worker.partition import Assignment, PartitionWorker
from bettong.worker.stage_program import StageProgram

FRAME_MESSAGES = 8192
FRAME_BYTES_MAX = 4 * 1024 * 1024


def worker_of(application: str, ready: StageProgram) -> PartitionWorker:
    """A new one, of the only partition."""
    return PartitionWorker(ready, Assignment(application, 0, 1, FRAME_BYTES_MAX))


def fold(
    worker: PartitionWorker, frames: Iterable[bytes], *, snapshot_s: float = math.inf
) -> tuple[list[OutputRecord], float]:
    """What frames lead to, and the CPU seconds that it took, with a snapshot each `snapshot_s`."""
    records: list[OutputRecord] = []
    begun = time.process_time()
    snapshot_at = time.monotonic()
    for frame in frames:
        with CollectionPaused():
            records.extend(worker.fold(worker.next_offset, frame))
        if time.monotonic() - snapshot_at >= snapshot_s:
            worker.increment()
            snapshot_at = time.monotonic()
    return records, time.process_time() - begun
