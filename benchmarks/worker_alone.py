"""The partition worker alone, fed from memory: frame decoding, fold, output frames, a snapshot a second of log."""

import time
from functools import cache

from benchmarks import number_load
from benchmarks.folding import FRAME_MESSAGES, fold, worker_of
from benchmarks.log_load import Splitter
from benchmarks.measuring import Sample
from benchmarks.waits import Waits
from benchmarks.workload import Workload, column_frames, log_frame, planned
from bettong.application.plan import Plan, plan
from bettong.edges.application_file import load as load_application
from bettong.frames.columns import Array
from bettong.frames.frame import decode
from bettong.garbage import CollectionPaused
from bettong.worker.output.framing import OutputRecord
from bettong.worker.stage_program import StageProgram, program
from examples.market_spread_oracle import by_symbol

# 100,000 messages/s in 200 frames/s, over 16 partitions: what a slot of the resident schedule is handed.
SMALL_FRAME_MESSAGES = 32
KEYS_FEW, KEYS_MANY = 350, 1_000_000
HOT, RARE = 2, 1000
PERCENTILES = (50, 99, 99.99)
_SNAPSHOT_S = 1.0


def stage(*, compiled: bool) -> StageProgram:
    """Market Spread's stage, ready to run."""
    return program(planned().stages[0], compiled=compiled)


def frames_of(load: Workload, frame_messages: int = FRAME_MESSAGES) -> list[bytes]:
    """The load as the records of one partition."""
    last: dict[str, int] = {}
    frames = []
    for sequence, (source, columns) in enumerate(column_frames(load, frame_messages), 1):
        previous = last.get(source.name, 0)
        frames.append(log_frame(source, columns, sequence=sequence, previous=previous, now_ns=sequence))
        last[source.name] = sequence
    return frames


def speed(ready: StageProgram, frames: list[bytes], load: Workload) -> Sample:
    """Messages a second of one core's time; the results are checked."""
    worker = worker_of("market-spread", ready)
    records, seconds = fold(worker, frames, snapshot_s=_SNAPSHOT_S)
    _check(records, load)
    return Sample(worker.counters.messages / seconds, seconds * 1e6 / worker.counters.messages)


def waits(ready: StageProgram, frames: list[bytes], load: Workload) -> list[Sample]:
    """Microseconds from a frame's bytes to its output's, of wall clock: `PERCENTILES` of the frames. Checked.

    A closed loop: frame after frame, no one waits in line. A snapshot is taken each second, and the frame waits for it.
    """
    worker = worker_of("market-spread", ready)
    records, waits = [], Waits()
    snapshot_ns = 0.0
    for offset, frame in enumerate(frames):
        begun_ns = time.perf_counter_ns()
        if begun_ns >= snapshot_ns:
            worker.increment()
            snapshot_ns = begun_ns + _SNAPSHOT_S * 1e9
        with CollectionPaused():
            found = worker.fold(offset, frame)
        waits.note_ns(time.perf_counter_ns() - begun_ns)
        records += found
    _check(records, load)
    return waits.samples(PERCENTILES, unit_ns=1000)


def hot_against_rare(messages: int, *, compiled: bool) -> Sample:
    """The speed with one result for two messages, in percent of that with one for a thousand."""
    rare, hot = (_odd_numbers(messages, keys=KEYS_FEW, every=each, compiled=compiled) for each in (RARE, HOT))
    return Sample(100 * hot.value / rare.value, hot.cpu_s_per_million)


def many_keys_against_few(messages: int, *, compiled: bool) -> Sample:
    """The speed with a state of 1 M keys, in percent of that with 350. All keys are known before."""
    few, many = (
        _odd_numbers(messages, keys=each, every=RARE, compiled=compiled) for each in (KEYS_FEW, KEYS_MANY)
    )
    return Sample(100 * many.value / few.value, many.cpu_s_per_million)


def _odd_numbers(messages: int, *, keys: int, every: int, compiled: bool) -> Sample:
    application, ready = _odd_program(compiled=compiled)
    worker = worker_of(application.application, ready)
    source, splitter = application.sources[0], Splitter(1)

    def frames(load: tuple[Array, Array]) -> list[bytes]:
        return [frame for _, frame in number_load.frames(splitter, source, load, FRAME_MESSAGES)]

    fold(worker, frames(number_load.all_keys(keys)), snapshot_s=_SNAPSHOT_S)
    worker.increment()
    load = number_load.numbers(messages, keys=keys, every=every)
    records, seconds = fold(worker, frames(load), snapshot_s=_SNAPSHOT_S)
    totals = [
        number_load.sums(decode(record.value), application.stages[0].outputs[0].schema) for record in records
    ]
    found = sum(map(len, totals)), sum(each.sum() for each in totals)
    assert found == number_load.right(*load), "the sums are wrong"
    return Sample(messages / seconds, seconds * 1e6 / messages)


@cache
def _odd_program(*, compiled: bool) -> tuple[Plan, StageProgram]:
    application = plan(load_application(str(number_load.APPLICATION)))
    return application, program(application.stages[0], compiled=compiled)


def _check(records: list[OutputRecord], load: Workload) -> None:
    results = b"".join(row for record in records for row in decode(record.value).rows or ())
    assert by_symbol(results) == load.rejected, "the worker's results are wrong"
