"""A task of the micro-batch schedule that waits, as for the store of a reference table, when its processor stops."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import psutil
import pyarrow as pa
import pytest
import structlog

from bettong_processor.micro_batch.query import MicroBatch
from bettong_processor.micro_batch.ticking import Ticking
from bettong_processor.micro_batch.unsaved import Unsaved
from bettong_processor.progress import Progress
from tests.integration.spark_sessions import spark_session
from tests.waiting import eventually

pytestmark = pytest.mark.slow

# What Spark takes to end a worker whose task it has cancelled: 4 s, on a busy machine.
KILLED_S_MAX = 20.0
WAIT_S = 4 * KILLED_S_MAX


class Quiet:
    """Progress and TICKs that nobody needs."""

    def start(self) -> None: ...

    def stop(self) -> None: ...


def test_a_stop_ends_the_worker_whose_task_waits(tmp_path: Path) -> None:
    worker = tmp_path / "worker"

    def waiting(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                worker.write_text(str(os.getpid()))
                threading.Event().wait(WAIT_S)
            yield batch

    with spark_session(tmp_path, {}) as session:
        session.sparkContext.setLogLevel("OFF")  # the stack trace of the task that is cancelled
        rows = session.readStream.format("rate").option("numPartitions", 1).load()
        query = (
            rows.mapInArrow(waiting, rows.schema)
            .writeStream.format("noop")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .start()
        )
        progress, ticking = cast("Progress", Quiet()), cast("Ticking", Quiet())
        run = MicroBatch(
            query, progress, ticking, Unsaved(60.0, {}), lambda ends: ends, structlog.get_logger()
        )
        eventually(lambda: worker.exists() and worker.read_text(), seconds=60)
        process = psutil.Process(int(worker.read_text()))
        run.stop(0.1)
        eventually(lambda: not process.is_running(), seconds=KILLED_S_MAX)
