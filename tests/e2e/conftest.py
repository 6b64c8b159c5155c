"""Whole suites for the end-to-end tests: every service a process, Kafka, Redis and Spark real."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from bettong import metrics
from bettong.application.plan import plan
from bettong.config.processor import Schedule
from bettong.edges.application_file import load
from bettong.edges.kafka_log import LogAdmin
from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.identifiers import PartitionId
from bettong.local.options import SuiteOptions
from bettong.local.suite import Suite
from bettong.metric_series import Metric
from bettong.topics import stage_topic
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]
PARTITIONS = 4
RESULTS_S_MAX = 240.0
# Longer than a batch, and than a receiver takes to say anew how far behind it is: a duplicate would have come.
QUIET_S = 3.0


@dataclass(frozen=True, slots=True)
class RunningSuite:
    """A suite, the folder of its results, and what its services say of themselves."""

    suite: Suite
    results: Path
    metrics: LiveMetrics

    @property
    def sender(self) -> str:
        """The sender's address."""
        return self.suite.record.sender

    def folded(self) -> int:
        """Messages that the processor has folded, over all stages."""
        return self.sum(metrics.MESSAGES)

    def sum(self, metric: Metric) -> int:
        """A metric over all partitions of all stages."""
        return sum(int(record.get(metric.name, 0)) for record in self.metrics.partitions().values())

    def bytes_of(self, sink: str) -> dict[str, bytes]:
        """The files of a sink, by name."""
        return {
            path.name: path.read_bytes()
            for path in (self.results / sink).glob("*")
            if path.suffix in (".bin", ".jsonl")
        }

    def all_bytes_of(self, sink: str) -> bytes:
        """The files of a sink, one after the other."""
        return b"".join(content for _, content in sorted(self.bytes_of(sink).items()))

    def await_bytes(self, sink: str, size: int) -> bytes:
        """Waits until a sink's files have `size` bytes, and returns what they have then."""
        eventually(lambda: len(self.all_bytes_of(sink)) >= size, seconds=RESULTS_S_MAX)
        return self.all_bytes_of(sink)

    def settle(self) -> None:
        """Waits until all that can come has come: the log is folded and delivered to its end, and stays as it is."""
        application = self.suite.record.name
        planned = plan(load(self.suite.record.application))
        stages = {stage_topic(application, stage.name): stage.name for stage in planned.stages}
        since_s, before = time.monotonic(), None

        def complete() -> bool:
            nonlocal since_s, before
            ends, folded = admin.ends(planned.topics), self.metrics.partitions()
            now = (ends, folded, self.metrics.live().get("receiver", {}).get(metrics.LAG.name))
            if now != before:
                since_s, before = time.monotonic(), now
            is_folded = all(
                int(folded.get(PartitionId(stages[topic], partition), {}).get(metrics.OFFSET.name, 0)) == end
                for (topic, partition), end in ends.items()
                if topic in stages and partition < self.suite.record.partitions
            )
            return is_folded and now[2] == "0" and time.monotonic() - since_s >= QUIET_S

        with LogAdmin(self.suite.record.kafka_connection) as admin:
            eventually(complete, seconds=RESULTS_S_MAX, what="all is folded and delivered, and nothing moves")


StartSuite = Callable[..., RunningSuite]


@pytest.fixture(scope="module")
def start_suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartSuite]:
    """Starts suites: `start_suite("examples/word_count.py", compiled=False)`. All are stopped at the end."""
    with ExitStack() as stack:

        def start(
            application: str,
            *,
            schedule: Schedule = Schedule.RESIDENT,
            compiled: bool = True,
            standby: bool = False,
            partitions: int = PARTITIONS,
            keep: Path | None = None,
            settings: dict[str, str] | None = None,
            environment: dict[str, dict[str, str]] | None = None,
        ) -> RunningSuite:
            results = keep / "results" if keep is not None else tmp_path_factory.mktemp("results") / "files"
            options = SuiteOptions(
                application=str(ROOT / application),
                partitions=partitions,
                schedule=schedule,
                compiled=compiled,
                standby=standby,
                keep=keep,
                results=results,
                settings={"snapshot_interval_ms": "200", **(settings or {})},
                environment=environment or {},
            )
            suite = stack.enter_context(Suite(options))
            store = stack.enter_context(RedisStore(suite.record.redis_connection, suite.record.name))
            return RunningSuite(suite, results, LiveMetrics(store))

        yield start
