"""What holds partitions up: reported in the processor's state, and forgotten when they go on."""

from collections.abc import Mapping
from typing import Any, cast

import structlog

from bettong import metrics
from bettong.errors import StoreUnavailableError
from bettong.identifiers import PartitionId, TopicPartition
from bettong.worker.stage_program import program
from bettong_processor.crashes.guard import Guard
from bettong_processor.micro_batch.task import WorkerProcess
from bettong_processor.progress import Progress
from bettong_processor.reporting import held_up, metrics_of
from bettong_processor.stamping import Stamping
from tests.samples.worker import meters, worker

FAULT = metrics.FAULT.name


def test_partitions_are_named_the_first_few_of_them() -> None:
    records = {PartitionId("check", number): {FAULT: f"offset {number}"} for number in range(5)}
    assert held_up({PartitionId("check", 7): {FAULT: ""}, PartitionId("check", 8): {}}) == ""
    assert held_up(records) == (
        "check/0 is held up: offset 0; check/1 is held up: offset 1; check/2 is held up: offset 2; and 2 more"
    )


def test_a_partition_that_goes_on_is_held_up_no_more() -> None:
    of = worker(program(meters().stages[0], compiled=False))
    assert metrics_of(of)[FAULT] == ""


class Log:
    """Logs that hold ten records each."""

    def ends(self, topics: Mapping[str, str]) -> Mapping[TopicPartition, int]:
        return dict.fromkeys((TopicPartition(topic, 1) for topic in topics), 10)

    def beginnings(self, topics: Mapping[str, str]) -> Mapping[TopicPartition, int]:
        return dict.fromkeys((TopicPartition(topic, 1) for topic in topics), 0)

    def close(self) -> None:
        """Nothing is open."""


class Reported:
    """Metrics in a Redis that may be away."""

    def __init__(self) -> None:
        self.records: Mapping[PartitionId, Mapping[str, str]] | None = None

    def partitions(self) -> Mapping[PartitionId, Mapping[str, str]]:
        if self.records is None:
            raise StoreUnavailableError("away")
        return self.records


def test_a_run_waits_for_a_partition_that_is_held_up() -> None:
    reported = Reported()
    progress = Progress(
        Log(),
        reported,
        {"a.stage.check": "check"},
        partitions=99,
        report_interval_s=0.5,
        clock=lambda: 0.0,
        logger=structlog.get_logger(),
    )
    progress.check()
    assert progress.waits_for() == ""
    reported.records = {PartitionId("check", 1): {FAULT: "offset 3"}}
    progress.check()
    assert progress.waits_for() == "check/1 is held up: offset 3"
    reported.records = {PartitionId("check", 1): {FAULT: ""}}
    progress.check()
    assert progress.waits_for() == ""


class Asked:
    """Exclusions that count how often they are read."""

    def __init__(self) -> None:
        self.count = 0

    def refresh(self) -> None:
        self.count += 1


def test_a_task_asks_for_exclusions_where_there_may_be_news_and_not_else() -> None:
    asked = Asked()
    guard = Guard(cast("Any", None), cast("Any", asked), cast("Any", None), structlog.get_logger())
    process = WorkerProcess(cast("Any", None), cast("Any", None), cast("Any", None), guard, Stamping())
    asks = []
    for begun_ms, attempt in ((5, 0), (5, 0), (5, 1), (5, 0), (6, 0), (6, 0)):
        process.begin_task(begun_ms, attempt)
        asks.append(asked.count)
    assert asks == [1, 1, 2, 2, 3, 3]
