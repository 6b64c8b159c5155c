"""Which tasks of resident slots have ended, according to a real Spark. Lost executors: `e2e/test_executors.py`."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from pyspark import InheritableThread, SparkContext, TaskContext
from pyspark.sql import SparkSession

from bettong_processor.resident.slots import LOOK_UP_MS, TaskExecutors, group_of, has_task
from tests.integration.spark_sessions import spark_session
from tests.waiting import eventually

pytestmark = pytest.mark.slow

SLOT = 3


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with spark_session(tmp_path_factory.mktemp("spark"), {}) as session:
        yield session


class Running:
    """A job of the slot, whose task runs until something is written to the pipe `release`."""

    def __init__(self, context: SparkContext, folder: Path) -> None:
        self._context = context
        self._begun, self.release = folder / "begun", folder / "release"
        os.mkfifo(self.release)
        self._thread: threading.Thread = InheritableThread(target=self._run)
        self._thread.start()
        eventually(self._begun.exists, what="the task runs")
        self.attempt = int(eventually(self._begun.read_text))

    def end(self) -> None:
        self.release.write_text("end")
        self._thread.join()

    def _run(self) -> None:
        begun, release = self._begun, self.release

        def work(numbers: Iterable[int]) -> Iterable[int]:
            task = TaskContext.get()
            assert task is not None
            begun.write_text(str(task.taskAttemptId()))
            release.read_text()
            yield from numbers

        self._context.setJobGroup(group_of(SLOT), "a slot")
        self._context.parallelize([SLOT], 1).mapPartitions(work).collect()


def test_a_task_has_ended_when_spark_says_so_and_is_looked_up_only_when_it_is_silent_for_long(
    spark: SparkSession, tmp_path: Path
) -> None:
    context = spark.sparkContext
    executors = TaskExecutors(context)
    (first, second) = (tmp_path / "1", tmp_path / "2")
    first.mkdir()
    second.mkdir()
    task = Running(context, first)
    eventually(lambda: has_task(context, SLOT))
    assert not executors.has_ended(SLOT, task.attempt + 9, silent_ms=10 * LOOK_UP_MS), (
        "Spark knows no such task"
    )
    assert not executors.has_ended(SLOT, task.attempt, silent_ms=10 * LOOK_UP_MS)
    task.end()
    assert not executors.has_ended(SLOT, task.attempt, silent_ms=LOOK_UP_MS - 1), "its executor lives"
    eventually(lambda: executors.has_ended(SLOT, task.attempt, silent_ms=LOOK_UP_MS))
    following = Running(context, second)
    eventually(lambda: has_task(context, SLOT))
    assert not executors.has_ended(SLOT, task.attempt, silent_ms=LOOK_UP_MS), "another task runs in its slot"
    following.end()
    eventually(lambda: executors.has_ended(SLOT, following.attempt, silent_ms=LOOK_UP_MS))
