"""The partition worker alone, fed from memory: frame decoding, fold, output frames, a snapshot a second of log."""

import time

from benchmarks.workload import Workload, column_frames, log_frame, planned
from bettong.frames.frame import decode
from bettong.worker.partition import Assignment, PartitionWorker
from bettong.worker.stage_program import StageProgram, program
from examples.market_spread_oracle import by_symbol

FRAME_MESSAGES = 8192
FRAME_BYTES_MAX = 4 * 1024 * 1024
_SNAPSHOT_S = 1.0


def stage(*, compiled: bool) -> StageProgram:
    """Market Spread's stage, ready to run."""
    return program(planned().stages[0], compiled=compiled)


def frames_of(load: Workload) -> list[bytes]:
    """The load as the records of one partition."""
    last: dict[str, int] = {}
    frames = []
    for sequence, (source, columns) in enumerate(column_frames(load, FRAME_MESSAGES), 1):
        previous = last.get(source.name, 0)
        frames.append(log_frame(source, columns, sequence=sequence, previous=previous, now_ns=sequence))
        last[source.name] = sequence
    return frames


def messages_per_s(ready: StageProgram, frames: list[bytes], load: Workload) -> float:
    """Messages a second on one core; the results are checked."""
    worker = PartitionWorker(ready, Assignment("market-spread", 0, 1, FRAME_BYTES_MAX))
    records = []
    begun = time.process_time()
    snapshot_at = time.monotonic()
    for offset, frame in enumerate(frames):
        records.extend(worker.fold(offset, frame))
        if time.monotonic() - snapshot_at >= _SNAPSHOT_S:
            worker.increment()
            snapshot_at = time.monotonic()
    seconds = time.process_time() - begun
    results = b"".join(row for record in records for row in decode(record.value).rows or ())
    assert by_symbol(results) == load.rejected, "the worker's results are wrong"
    return worker.counters.messages / seconds
