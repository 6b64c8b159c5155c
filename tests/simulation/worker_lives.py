"""Lives of a worker in real processes, over one log: for what ends them."""

import faulthandler
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from bettong.errors import PoisonError
from bettong.worker.output.framing import OutputRecord
from bettong.worker.partition import Assignment, PartitionWorker
from bettong.worker.stage_program import StageProgram
from bettong_processor.crashes.watch import Watch
from tests.samples.worker import FRAME_BYTES_MAX
from tests.simulation.crash_guards import guard

# Processes that a run may take: two die, the third goes on. With more than one guilty record more.
LIVES_MAX = 8
# How a process ends that came to the end of the log.
DONE = 42


def fold_in_a_process(of: StageProgram, log: Sequence[bytes], folder: Path, limit_ms: int) -> int:
    """One life of a worker, from the beginning of the log; its exit code, minus a signal. Output goes to a file."""
    child = os.fork()
    if child == 0:
        live(of, log, folder, limit_ms)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def live(of: StageProgram, log: Sequence[bytes], folder: Path, limit_ms: int) -> NoReturn:
    code = 99
    faulthandler.disable()  # pytest's, which would write a page for each death
    try:
        reported: list[str] = []
        own = guard(folder, limit_ms=limit_ms, reported=reported)
        own.exclusions.refresh()
        Watch(own.at_work, own.reports, limit_ms).start()
        worker = PartitionWorker(of, Assignment("meters", 0, 1, FRAME_BYTES_MAX))
        fold = own.of(worker)
        found = [record for offset, value in enumerate(log) for record in fold(offset, value)]
        lines = [json.dumps([each.topic, each.partition, each.value.hex(), each.count]) for each in found]
        (folder / "output").write_text("\n".join(lines))
        (folder / "reported").write_text("\n".join(reported))
        code = DONE
    except PoisonError as error:
        (folder / "stopped").write_text(str(error))
        code = 8
    finally:
        os._exit(code)


def lived(of: StageProgram, log: Sequence[bytes], folder: Path, limit_ms: int = 0) -> int:
    """How many processes it took until one came to the end of the log."""
    for lives in range(1, LIVES_MAX + 1):
        if fold_in_a_process(of, log, folder, limit_ms) == DONE:
            return lives
    raise AssertionError(f"{LIVES_MAX} processes died")


def output(folder: Path) -> list[OutputRecord]:
    lines = (folder / "output").read_text().splitlines()
    return [
        OutputRecord(topic, partition, bytes.fromhex(value), count)
        for topic, partition, value, count in map(json.loads, lines)
    ]
